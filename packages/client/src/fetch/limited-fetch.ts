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

/** Options of {@link limitedFetch}. */
export interface LimitedFetchOptions {
  /** The limiter: one of `sluice`, in memory or on Redis, or `serviceLimiter`. Limiters of slots are not accepted. */
  readonly limiter: FetchLimiter
  /** Key of a request. Default: host and port of the URL. */
  readonly key?: ((request: OutgoingRequest) => string) | undefined
  /** Cost of a request in units. Default: 1. */
  readonly cost?: number | ((request: OutgoingRequest) => number) | undefined
  /** Maximum wait in milliseconds: a whole number from 1. Default: no maximum. */
  readonly maxWaitMs?: number | undefined
  /** Whether to also wait as long as earlier responses for the same key announced. Default: true. */
  readonly learn?: boolean | undefined
  /** Sends the requests. Default: the platform's `fetch`. */
  readonly fetch?: FetchFunction | undefined
  /** Sleeps. Default: timers of the process. */
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

/** Advice about a value that is not a limiter. */
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
 * A `fetch` that waits for a limiter before it sends. It also waits while the server has announced that nothing
 * remains: after an answer with `RateLimit` or `X-RateLimit-*` until the reset, after 429 and 503 as long as they say,
 * at most a day. Rejects with `SLUICE_CLIENT_TURN_REFUSED`, and sends nothing, if the wait would exceed `maxWaitMs` or
 * never end; with the reason of the call's signal if that aborts. Answers are returned unchanged. Throws for invalid
 * options.
 */
export function limitedFetch(options: LimitedFetchOptions): FetchFunction {
  checkOptions(options, LIMITED_FETCH)
  const { limiter, maxWaitMs, cost = 1, key: keyOf = hostOf, learn = true } = options
  const { fetch: send = platformFetch, sleep = systemSleep, nowMs = systemNowMs } = options
  const pauses = new KeyPauses()

  /** Waits until the pause of a key is over, including pauses that begin meanwhile. */
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

/** The used part of a decision. */
export interface FetchLimiterResult {
  readonly allowed: boolean
  /** Milliseconds until the call would be allowed, if it is not; Infinity if waiting does not help. */
  readonly retryAfterMs: number
}

/** Options of a wait. */
export interface FetchLimiterOptions {
  /** Cost of the call in units. */
  readonly cost: number
  /** Ends the wait, which rejects with its reason. */
  readonly signal?: AbortSignal
  /** Maximum wait in milliseconds: a whole number from 1. Default: no maximum. */
  readonly maxWait?: number
}

/** Lets callers wait: every limiter of `sluice`, and the result of `serviceLimiter`. */
export interface FetchLimiter {
  /**
   * Whether it limits slots, which must be released. `limitedFetch` does not accept these, because it does not know
   * when the work ends.
   */
  readonly holdsSlots?: boolean | undefined
  /** Resolves when the call is allowed, or with a denial if that would take too long. */
  acquire(key: string, options: FetchLimiterOptions): Promise<FetchLimiterResult>
}

/** A time in which nothing is sent. */
export interface Pause {
  readonly untilMs: number
  readonly lengthMs: number
}

/** Maximum accepted pause: a longer one is probably in a wrong unit. */
const LONGEST_PAUSE_MS = 86_400_000

/** Expired pauses are removed from this number on. */
const MANY_PAUSES = 1000

/** The announced pauses of each key. */
class KeyPauses {
  readonly #pauses = new Map<string, Pause>()

  /** Keeps an announced pause, unless a longer one is known. */
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

  /** The current pause of a key. */
  of(key: string, nowMs: number): Pause | undefined {
    const pause = this.#pauses.get(key)
    if (pause === undefined || pause.untilMs > nowMs) return pause
    this.#pauses.delete(key)
    return undefined
  }

  /** Marks a pause as over, whatever the clock says: it may have been set back. */
  end(key: string, pause: Pause): void {
    if (this.#pauses.get(key) === pause) this.#pauses.delete(key)
  }

  #sweep(nowMs: number): void {
    for (const [key, { untilMs }] of this.#pauses) if (untilMs <= nowMs) this.#pauses.delete(key)
  }
}
