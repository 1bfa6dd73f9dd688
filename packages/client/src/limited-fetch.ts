import { COST, can, FLAG, FUNCTION, isWhole, type OptionForm } from '@sluice/core/options'
import type { NowMs, Sleep } from '@sluice/runtime/portable'
import { systemNowMs, systemSleep } from '@sluice/runtime/portable'
import { AnnouncedPauses } from './announced-pauses.ts'
import { ClientError } from './client-error.ts'
import { type FetchFunction, platformFetch } from './fetch-function.ts'
import { checkOptions, numberForm, takerOf } from './option-check.ts'
import { isRequestInput, type OutgoingRequest, outgoingCall } from './outgoing-request.ts'
import type { TurnLimiter } from './turn-limiter.ts'

/** What requests wait for. */
export interface LimitedFetchOptions {
  /** Says whose turn it is: a limiter of `sluice`, in memory or on Redis, or `serviceTurns`. One of slots is refused. */
  readonly limiter: TurnLimiter
  /** Whose turn a request waits for; the host (and port) of its address when left out. */
  readonly key?: ((request: OutgoingRequest) => string) | undefined
  /** Units that a request takes; 1 when left out. */
  readonly cost?: number | ((request: OutgoingRequest) => number) | undefined
  /** Most milliseconds that a request waits, whole, 1 or more; as long as it takes when left out. */
  readonly maxWaitMs?: number | undefined
  /** Whether requests of a key also wait as long as its last answers announced; true when left out. */
  readonly learn?: boolean | undefined
  /** What requests are sent with; the platform's `fetch` when left out. */
  readonly fetch?: FetchFunction | undefined
  /** Waits; on timers of the process when left out. */
  readonly sleep?: Sleep | undefined
  /** Reads the wall clock; that of the system when left out. */
  readonly nowMs?: NowMs | undefined
}

const LIMITER: OptionForm = {
  expected: 'a limiter over time, such as createLimiter({ limit: 100, window: "1s" }), or what serviceTurns makes',
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

const LIMITED_FETCH = takerOf({
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

/** What to do about something that says nobody's turn. */
function limiterAdvice(value: unknown): string | undefined {
  if (isClient(value)) return 'It is a client: pass serviceTurns({ client, request }).'
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
  return can(value, 'acquire') && (value as TurnLimiter).holdsSlots === true
}

function isRule(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('limit' in value || 'window' in value || 'algorithm' in value)
}

/**
 * A `fetch` that waits for its turn before it sends, instead of being told off. It waits for the limiter, and while the other
 * side has announced that nothing is left: after an answer with `RateLimit` or `X-RateLimit-*` that says so until the reset, after
 * 429 and 503 as long as they ask, at most a day. Rejects with `SLUICE_CLIENT_TURN_REFUSED`, and sends nothing, when the turn
 * would come later than `maxWaitMs` or never; with the reason of the call's signal when that aborts. Answers are given as they
 * are. Throws when an option cannot be used.
 */
export function limitedFetch(options: LimitedFetchOptions): FetchFunction {
  checkOptions(options, LIMITED_FETCH)
  const { limiter, maxWaitMs, cost = 1, key: keyOf = hostOf, learn = true } = options
  const { fetch: send = platformFetch, sleep = systemSleep, nowMs = systemNowMs } = options
  const pauses = new AnnouncedPauses()

  /** Waits until the pause of a key is over, also when another begins meanwhile. */
  async function waitOut(key: string, deadlineMs: number, signal: AbortSignal | undefined): Promise<void> {
    for (let pause = pauses.of(key, nowMs()); pause !== undefined; pause = pauses.of(key, nowMs())) {
      const waitMs = Math.min(pause.untilMs - nowMs(), pause.lengthMs)
      if (waitMs > deadlineMs - nowMs()) throw turnRefused(key, waitMs)
      await sleep(waitMs, signal)
      pauses.end(key, pause)
    }
  }

  return async (input, init) => {
    const call = outgoingCall(input, init)
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
    if (!turn.allowed) throw turnRefused(key, turn.retryAfterMs)
    // Somebody else may have been told to stay away meanwhile.
    await waitOut(key, deadlineMs, signal)
    const response = await send(input, init)
    if (learn) pauses.learn(key, response, nowMs())
    return response
  }
}

function hostOf({ url }: OutgoingRequest): string {
  return url.host
}

function turnRefused(key: string, waitMs: number): ClientError {
  const isHopeless = waitMs === Number.POSITIVE_INFINITY
  const when = isHopeless ? 'never' : `in ${Math.ceil(waitMs)} ms`
  const action = isHopeless ? 'Ask for less, or raise the limit.' : 'Come back then, or allow a longer wait.'
  const detail = `The turn of "${key.slice(0, 80)}" comes ${when}. Nothing was sent. ${action}`
  return new ClientError('SLUICE_CLIENT_TURN_REFUSED', { detail, ...(isHopeless ? {} : { retryAfterMs: waitMs }) })
}
