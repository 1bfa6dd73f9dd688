import type { OptionForm } from '@sluice/core/options'
import { COST, can, FLAG, FUNCTION, isWhole } from '@sluice/core/options'
import type { NowMs, Sleep } from '@sluice/runtime/portable'
import { systemNowMs, systemSleep } from '@sluice/runtime/portable'
import { ClientError } from '../errors/client-error.ts'
import { checkOptions, numberForm, optionTaker } from '../errors/client-option-check.ts'
import { exhaustedForMs, retryAfterMsOf } from '../http/parse-retry-after.ts'
import type { FetchFunction } from '../http/send-request.ts'
import { platformFetch } from '../http/send-request.ts'
import type { OutgoingRequest } from './fetch-call.ts'
import { fetchCall, isRequestInput } from './fetch-call.ts'

/** What requests wait for. */
export interface LimitedFetchOptions {
  /**
   * Says whose turn it is: a limiter of `sluice`, in memory or on Redis, or `serviceLimiter`. A limiter of slots is not
   * accepted.
   */
  readonly limiter: FetchLimiter
  /** Key that the limiter counts. Default: host and port of the URL. */
  readonly key?: ((request: OutgoingRequest) => string) | undefined
  /** Units that a request takes. Default: 1. */
  readonly cost?: number | ((request: OutgoingRequest) => number) | undefined
  /** Maximum wait in milliseconds: a whole number from 1. Default: no maximum. */
  readonly maxWaitMs?: number | undefined
  /** Whether to also wait as long as earlier responses for the same key announced. Default: true. */
  readonly learn?: boolean | undefined
  /** Sends the requests. Default: the platform's `fetch`. */
  readonly fetch?: FetchFunction | undefined
  /** Waits. Default: with timers of the process. */
  readonly sleep?: Sleep | undefined
  /** Reads the wall clock. Default: the system clock. */
  readonly nowMs?: NowMs | undefined
}

const LIMITER: OptionForm = {
  expected: 'a limiter over time, such as createLimiter({ limit: 100, window: "1s" }), or what serviceLimiter makes',
  accepts: (value) => can(value, 'acquire') && !isClient(value) && !holdsSlots(value),
  advise: limiterAdvice,
  isNeeded: true,
}

const KEY: OptionForm = {
  ...FUNCTION,
  expected: 'a function such as ({ url }) => url.host',
  advise: (value) =>
    typeof value === 'string' ? 'Write a function that answers with it: key: () => "...".' : undefined,
}

const LIMITED_FETCH = optionTaker({
  name: 'limitedFetch',
  example: '{ limiter: createLimiter({ limit: 100, window: "1s" }) }',
  forms: {
    limiter: LIMITER,
    key: KEY,
    cost: COST,
    maxWaitMs: numberForm('milliseconds: a whole number from 1', (value) => isWhole(value, 1, Number.MAX_SAFE_INTEGER)),
    learn: FLAG,
    fetch: FUNCTION,
    sleep: FUNCTION,
    nowMs: FUNCTION,
  } satisfies Record<keyof LimitedFetchOptions, OptionForm>,
  otherNames: {
    rateLimiter: 'limiter',
    keyGenerator: 'key',
    identifier: 'key',
    tokens: 'cost',
    units: 'cost',
    weight: 'cost',
    maxWait: 'maxWaitMs',
    timeout: 'maxWaitMs',
    timeoutMs: 'maxWaitMs',
  },
  advise: (options) => {
    if (isRequestInput(options)) return 'Pass the address to what it returns: limitedFetch({ limiter })(url).'
    if (can(options, 'acquire')) return 'Write limitedFetch({ limiter }).'
    return isRule(options) ? 'Write limitedFetch({ limiter: createLimiter({ limit, window }) }).' : undefined
  },
})

/** What to do about something that is no limiter. */
function limiterAdvice(value: unknown): string | undefined {
  if (isClient(value)) return 'It is a client: pass serviceLimiter({ client, request }).'
  if (holdsSlots(value)) {
    return 'A slot would be held until its lease ends: take one with reserve() before the call and release() it after.'
  }
  if (can(value, 'limiter')) return 'It has several rules: pass the limiter of one, such as limiters.limiter("name").'
  if (can(value, 'then')) return 'It is a promise: await it first.'
  return isRule(value) ? 'It is a rule: pass createLimiter(rule).' : undefined
}

function isClient(value: unknown): boolean {
  return can(value, 'heartbeat')
}

function holdsSlots(value: unknown): boolean {
  return can(value, 'acquire') && (value as FetchLimiter).holdsSlots === true
}

function isRule(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('limit' in value || 'window' in value || 'algorithm' in value)
}

/**
 * A `fetch` that waits for its turn before it sends, instead of being told off. It waits for the limiter, and while the
 * other side has announced that nothing is left: after an answer with `RateLimit` or `X-RateLimit-*` that says so until
 * the reset, after 429 and 503 as long as they ask, at most a day. Rejects with `SLUICE_CLIENT_TURN_REFUSED`, and sends
 * nothing, when the turn would come later than `maxWaitMs` or never; with the reason of the call's signal when that
 * aborts. Answers are given as they are. Throws when an option cannot be used.
 */
export function limitedFetch(options: LimitedFetchOptions): FetchFunction {
  checkOptions(options, LIMITED_FETCH)
  const { limiter, maxWaitMs, cost = 1, key: keyOf = hostOf, learn = true } = options
  const { fetch: send = platformFetch, sleep = systemSleep, nowMs = systemNowMs } = options
  const pauses = new KeyPauses()

  /** Waits until the pause of a key is over, also when another begins meanwhile. */
  async function waitOut(key: string, deadlineMs: number, signal: AbortSignal | undefined): Promise<void> {
    for (let pause = pauses.of(key, nowMs()); pause !== undefined; pause = pauses.of(key, nowMs())) {
      const waitMs = Math.min(pause.untilMs - nowMs(), pause.lengthMs)
      if (waitMs > deadlineMs - nowMs()) throw turnDenied(key, waitMs)
      await sleep(waitMs, signal)
      pauses.end(key, pause)
    }
  }

  return async (input, init) => {
    const call = fetchCall(input, init)
    const { signal } = call
    signal?.throwIfAborted()
    const key = keyOf(call)
    const deadlineMs = nowMs() + (maxWaitMs ?? Number.POSITIVE_INFINITY)
    await waitOut(key, deadlineMs, signal)
    const turn = await limiter.acquire(key, {
      cost: typeof cost === 'number' ? cost : cost(call),
      ...(signal === undefined ? {} : { signal }),
      ...(maxWaitMs === undefined ? {} : { maxWait: Math.max(1, Math.ceil(deadlineMs - nowMs())) }),
    })
    if (!turn.allowed) throw turnDenied(key, turn.retryAfterMs)
    // Another call may have received a Retry-After meanwhile.
    await waitOut(key, deadlineMs, signal)
    const response = await send(input, init)
    if (learn) pauses.learn(key, response, nowMs())
    return response
  }
}

function hostOf({ url }: OutgoingRequest): string {
  return url.host
}

function turnDenied(key: string, waitMs: number): ClientError {
  const isHopeless = waitMs === Number.POSITIVE_INFINITY
  const when = isHopeless ? 'never' : `in ${Math.ceil(waitMs)} ms`
  const action = isHopeless ? 'Ask for less, or raise the limit.' : 'Come back then, or allow a longer wait.'
  const detail = `The turn of "${key.slice(0, 80)}" comes ${when}. Nothing was sent. ${action}`
  return new ClientError('SLUICE_CLIENT_TURN_REFUSED', { detail, ...(isHopeless ? {} : { retryAfterMs: waitMs }) })
}

/** The part of a decision that says whether it is the caller's turn. */
export interface FetchLimiterResult {
  readonly allowed: boolean
  /** Milliseconds until it would be, when it is not; Infinity when waiting does not help. */
  readonly retryAfterMs: number
}

/** How to wait for a turn. */
export interface FetchLimiterOptions {
  /** Units that the call takes. */
  readonly cost: number
  /** Ends the waiting, which rejects with its reason. */
  readonly signal?: AbortSignal
  /** Maximum wait in milliseconds: a whole number from 1. Default: no maximum. */
  readonly maxWait?: number
}

/**
 * Lets callers wait until it is their turn: every limiter of `sluice` is one, and so is what `serviceLimiter` makes.
 */
export interface FetchLimiter {
  /**
   * Whether a turn is a slot, to be given back. `limitedFetch` does not accept these, because `acquire` is not woken by
   * a release.
   */
  readonly holdsSlots?: boolean | undefined
  /** Resolves when it is the caller's turn, or with a denial when that would take too long. */
  acquire(key: string, options: FetchLimiterOptions): Promise<FetchLimiterResult>
}

/** A time in which nothing is to be sent. */
export interface Pause {
  readonly untilMs: number
  readonly lengthMs: number
}

/** Maximum wait that is accepted from a server: a longer one is likely a wrong unit. */
const LONGEST_PAUSE_MS = 86_400_000

/** From this number on, expired ones are removed. */
const MANY_PAUSES = 1000

/** What the answers to the calls of each key have said: until when there is no sense in another. */
class KeyPauses {
  readonly #pauses = new Map<string, Pause>()

  /** Keeps what an answer announces, unless a longer pause is known. */
  learn(key: string, response: Response, nowMs: number): void {
    const { status, headers } = response
    const isTurnedAway = status === 429 || status === 503
    const waitMs = isTurnedAway ? retryAfterMsOf(response, nowMs) : exhaustedForMs(headers, nowMs, false)
    if (waitMs === undefined || waitMs <= 0) return
    const lengthMs = Math.min(waitMs, LONGEST_PAUSE_MS)
    const untilMs = nowMs + lengthMs
    if (untilMs <= (this.#pauses.get(key)?.untilMs ?? 0)) return
    if (this.#pauses.size >= MANY_PAUSES) this.#sweep(nowMs)
    this.#pauses.set(key, { untilMs, lengthMs })
  }

  /** The pause of a key that is not over. */
  of(key: string, nowMs: number): Pause | undefined {
    const pause = this.#pauses.get(key)
    if (pause === undefined || pause.untilMs > nowMs) return pause
    this.#pauses.delete(key)
    return undefined
  }

  /** Says that a pause was waited for, whatever the clock says: it may have been set back. */
  end(key: string, pause: Pause): void {
    if (this.#pauses.get(key) === pause) this.#pauses.delete(key)
  }

  #sweep(nowMs: number): void {
    for (const [key, { untilMs }] of this.#pauses) if (untilMs <= nowMs) this.#pauses.delete(key)
  }
}
