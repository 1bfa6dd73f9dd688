import { FUNCTION, isWhole, OBJECT, type OptionForm } from '@sluice/core/options'
import type { NowMs, Random, Sleep } from '@sluice/runtime/portable'
import { backoffDelayMs, systemNowMs, systemRandom, systemSleep } from '@sluice/runtime/portable'
import { announcedWaitMs } from './announced-wait.ts'
import { type FetchFunction, platformFetch } from './fetch-function.ts'
import { wasNeverSent } from './never-sent.ts'
import { checkOptions, choiceForm, numberForm, takerOf } from './option-check.ts'
import { isRequestInput, type OutgoingCall, outgoingCall } from './outgoing-request.ts'
import { replayableRequest } from './replayable-request.ts'
import { checkWaits, OTHER_TRY_NAMES, TRY_FORMS, type TryOptions } from './retry-options.ts'

const USUAL_TRIES = 5
const USUAL_WAIT_MS = 300_000
const USUAL_STATUSES = [408, 425, 429, 500, 502, 503, 504]

/** Methods of which the second call changes nothing that the first has not (RFC 9110 section 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE', 'QUERY'])

/**
 * Which requests may be sent again. `idempotent`: those of an idempotent method and those with an `Idempotency-Key`. `refused`:
 * any other, too, when the answer is 429, or 503 with `Retry-After`: the server says that it did nothing. `always`: all.
 * A request that was never sent, because there was no connection, is sent again in any case.
 */
export type RepeatPolicy = 'idempotent' | 'refused' | 'always'

/** A try that failed and will be followed by another. */
export interface FetchRetryNotice {
  /** The try that failed; 0 for the first. */
  readonly attempt: number
  /** How long the wait before the next try will be, in milliseconds. */
  readonly delayMs: number
  readonly method: string
  readonly url: URL
  /** The status of the answer; undefined when there was none. */
  readonly status: number | undefined
  /** What the request failed with; undefined when it was answered. */
  readonly error: unknown
}

/** How requests are tried again. */
export interface RetryFetchOptions extends TryOptions {
  /** What requests are sent with; the platform's `fetch` when left out. */
  readonly fetch?: FetchFunction | undefined
  /** Answers that are worth another try; 408, 425, 429, 500, 502, 503 and 504 when left out. */
  readonly statuses?: readonly number[] | undefined
  /** `idempotent` when left out. */
  readonly repeat?: RepeatPolicy | undefined
  /** Most milliseconds that one call waits between its tries, all together; 300000 when left out. */
  readonly maxWaitMs?: number | undefined
  /** Told of every failure that is followed by another try, before the wait. */
  readonly onRetry?: ((notice: FetchRetryNotice) => void) | undefined
  /** Waits; on timers of the process when left out. */
  readonly sleep?: Sleep | undefined
  /** Reads the wall clock; that of the system when left out. */
  readonly nowMs?: NowMs | undefined
  /** Source of the jitter; that of the system when left out. */
  readonly random?: Random | undefined
}

type Settings = Required<{ [Name in keyof RetryFetchOptions]: Exclude<RetryFetchOptions[Name], undefined> }>

/** How a try ended. */
type Outcome =
  | { readonly response: Response; readonly error?: undefined }
  | { readonly error: unknown; readonly response?: undefined }

/**
 * A `fetch` that tries again what failed for a moment: after 2 s, 4 s, 8 s ... up to 60 s, each a quarter longer or shorter by
 * chance, and never before the server said (`Retry-After`, `RateLimit`, `X-RateLimit-*`). When the tries or the time are used up
 * it gives what it got last: an answer, or the error. A wait that would be too long is not begun. A body that is a stream is
 * sent once. The signal of a call ends its waits as well. Throws when an option cannot be used.
 */
export function retryFetch(options: RetryFetchOptions = {}): FetchFunction {
  const settings = settingsOf(options)
  return async (input, init) => {
    const call = outgoingCall(input, init)
    const request = replayableRequest(input, init)
    try {
      let waitedMs = 0
      for (let attempt = 0; ; attempt++) {
        const outcome = await outcomeOf(settings.fetch(...request.next()))
        const isLast = attempt + 1 >= settings.maxTries || !request.canReplay || !mayRepeat(outcome, call, settings)
        const delayMs = isLast ? Number.POSITIVE_INFINITY : delayAfter(outcome, attempt, settings)
        if (waitedMs + delayMs > settings.maxWaitMs) return resultOf(outcome)
        waitedMs += delayMs
        tell(outcome, { attempt, delayMs, call, settings })
        // Nobody reads it, and the connection is needed for the next try.
        await outcome.response?.body?.cancel().catch(() => undefined)
        await settings.sleep(delayMs, call.signal)
      }
    } finally {
      request.end()
    }
  }
}

const STATUSES: OptionForm = {
  expected: 'a list of statuses such as [429, 503]',
  accepts: (value) => Array.isArray(value) && value.every((status) => isWhole(status, 100, 599)),
  advise: (value) => {
    const statuses = [value].flat().map((status) => (typeof status === 'string' ? Number(status) : status))
    return statuses.length > 0 && statuses.every((status) => isWhole(status, 100, 599))
      ? `Write the numbers in a list: [${statuses.slice(0, 8).join(', ')}].`
      : undefined
  },
}

const RETRY_FETCH = takerOf({
  name: 'retryFetch',
  example: '{ maxTries: 3 }',
  forms: {
    ...TRY_FORMS,
    fetch: FUNCTION,
    statuses: STATUSES,
    repeat: choiceForm('idempotent', 'refused', 'always'),
    maxWaitMs: numberForm('milliseconds: a number from 0', (value) => value >= 0),
    onRetry: FUNCTION,
    sleep: FUNCTION,
    nowMs: FUNCTION,
    random: FUNCTION,
  } satisfies Partial<Record<keyof RetryFetchOptions, OptionForm>>,
  otherNames: {
    ...OTHER_TRY_NAMES,
    status: 'statuses',
    statusCodes: 'statuses',
    retryOn: 'statuses',
    retryCondition: 'statuses',
    methods: 'repeat',
    maxRetryTime: 'maxWaitMs',
    maxWait: 'maxWaitMs',
    beforeRetry: 'onRetry',
    onFailedAttempt: 'onRetry',
  },
  advise: (options) => {
    if (isRequestInput(options)) return 'Pass the address to what it returns: retryFetch()(url).'
    if (typeof options === 'function') return 'Write retryFetch({ fetch }).'
    return OBJECT.accepts(options) && ['timeout', 'timeoutMs'].some((name) => name in (options as object))
      ? 'Give the time of a call with the call: { signal: AbortSignal.timeout(5000) }.'
      : undefined
  },
})

function settingsOf(options: RetryFetchOptions): Settings {
  checkOptions(options, RETRY_FETCH)
  checkWaits(options)
  const { maxWaitMs = USUAL_WAIT_MS, repeat = 'idempotent' } = options
  return {
    fetch: options.fetch ?? platformFetch,
    maxTries: options.maxTries ?? USUAL_TRIES,
    baseMs: options.baseMs ?? 2000,
    capMs: options.capMs ?? 60_000,
    statuses: options.statuses ?? USUAL_STATUSES,
    repeat,
    // An endless wait is never begun.
    maxWaitMs: Math.min(maxWaitMs, Number.MAX_SAFE_INTEGER),
    onRetry: options.onRetry ?? (() => undefined),
    sleep: options.sleep ?? systemSleep,
    nowMs: options.nowMs ?? systemNowMs,
    random: options.random ?? systemRandom,
  }
}

function outcomeOf(answer: Promise<Response>): Promise<Outcome> {
  return answer.then(
    (response) => ({ response }),
    (error: unknown) => ({ error }),
  )
}

function resultOf({ response, error }: Outcome): Response {
  if (response === undefined) throw error
  return response
}

function mayRepeat(
  { response, error }: Outcome,
  { method, headers, signal }: OutgoingCall,
  settings: Settings,
): boolean {
  if (signal?.aborted === true) return false
  const isSafe = settings.repeat === 'always' || IDEMPOTENT.has(method) || headers.has('idempotency-key')
  // `fetch` has one kind of error for all that may go wrong on the way.
  if (response === undefined) return wasNeverSent(error) || (isSafe && error instanceof TypeError)
  if (!settings.statuses.includes(response.status)) return false
  return isSafe || (settings.repeat === 'refused' && isRefusal(response))
}

function isRefusal({ status, headers }: Response): boolean {
  return status === 429 || (status === 503 && headers.has('retry-after'))
}

function delayAfter({ response }: Outcome, attempt: number, { random, nowMs, baseMs, capMs }: Settings): number {
  const announcedMs = response === undefined ? 0 : (announcedWaitMs(response, nowMs()) ?? 0)
  return Math.max(backoffDelayMs(attempt, random, { baseMs, capMs }), announcedMs)
}

interface Telling {
  readonly attempt: number
  readonly delayMs: number
  readonly call: OutgoingCall
  readonly settings: Settings
}

function tell({ response, error }: Outcome, { attempt, delayMs, call, settings }: Telling): void {
  settings.onRetry({ attempt, delayMs, method: call.method, url: call.url, status: response?.status, error })
}
