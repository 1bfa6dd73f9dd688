import { FUNCTION, isWhole, OBJECT, type OptionForm } from '@sluice/core/options'
import type { NowMs, Random, Sleep } from '@sluice/runtime/portable'
import { backoffDelayMs, DEFAULT_MAX_RETRIES, systemNowMs, systemRandom, systemSleep } from '@sluice/runtime/portable'
import { retriesExhausted } from '../errors/client-error.ts'
import { checkOptions, choiceForm, numberForm, optionTaker } from '../errors/client-option-check.ts'
import { retryAfterMsOf } from '../http/parse-retry-after.ts'
import { type FetchFunction, platformFetch } from '../http/send-request.ts'
import { checkWaits, OTHER_RETRY_NAMES, RETRY_FORMS, type RetryLimits } from '../retry/retry-options.ts'
import { wasNeverSent } from '../retry/retry-safety.ts'
import { type FetchCall, fetchCall, isRequestInput, replayableRequest } from './fetch-call.ts'

const USUAL_WAIT_MS = 300_000
const USUAL_STATUSES = [408, 425, 429, 500, 502, 503, 504]

/** Idempotent methods (RFC 9110 section 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE', 'QUERY'])

/**
 * Which requests may be retried. `idempotent`: those with an idempotent method or an `Idempotency-Key`. `refused`: also
 * any other if the answer is 429, or 503 with `Retry-After`: the server says that it did nothing. `always`: all. A
 * request that was never sent, because there was no connection, is always retried.
 */
export type RepeatPolicy = 'idempotent' | 'refused' | 'always'

/** A request that failed and will be retried. */
export interface FetchRetryNotice {
  /** Number of the failed request; 0 for the first. */
  readonly attempt: number
  /** The wait before the retry in milliseconds. */
  readonly delayMs: number
  readonly method: string
  readonly url: URL
  /** The status of the answer; undefined without one. */
  readonly status: number | undefined
  /** The error of the request; undefined if it was answered. */
  readonly error: unknown
}

/** Options of {@link retryFetch}. */
export interface RetryFetchOptions extends RetryLimits {
  /** Sends the requests. Default: the platform's `fetch`. */
  readonly fetch?: FetchFunction | undefined
  /** Statuses that are retried. Default: 408, 425, 429, 500, 502, 503 and 504. */
  readonly statuses?: readonly number[] | undefined
  /** Default: `idempotent`. */
  readonly repeat?: RepeatPolicy | undefined
  /** Maximum milliseconds that one call waits in total. Default: 300000. */
  readonly maxWaitMs?: number | undefined
  /** Called for every failure that is retried, before the wait. */
  readonly onRetry?: ((notice: FetchRetryNotice) => void) | undefined
  /** Sleeps. Default: timers of the process. */
  readonly sleep?: Sleep | undefined
  /** Reads the wall clock. Default: the system clock. */
  readonly nowMs?: NowMs | undefined
  /** Source of random jitter. Default: the system's. */
  readonly random?: Random | undefined
}

type Settings = Pick<RetryFetchOptions, 'baseMs' | 'capMs'> &
  Required<{
    [Name in Exclude<keyof RetryFetchOptions, 'baseMs' | 'capMs'>]: Exclude<RetryFetchOptions[Name], undefined>
  }>

/** How one request ended. */
type Outcome =
  | { readonly response: Response; readonly error?: undefined }
  | { readonly error: unknown; readonly response?: undefined }

/**
 * A `fetch` that retries temporary failures: after 2 s, 4 s, 8 s ... up to 60 s, with a jitter of 25%, and never before
 * the time that the server announced (`Retry-After`, `RateLimit`, `X-RateLimit-*`). When retries or time are used up,
 * it returns the last answer. Without an answer it rejects: with `SLUICE_CLIENT_RETRIES_EXHAUSTED`, whose `cause` is
 * the last error, when the last retry failed; else with the error itself. A wait that would be too long is not begun. A
 * body that is a stream is sent once. The signal of a call ends its waits as well. Throws when an option cannot be
 * used.
 */
export function retryFetch(options: RetryFetchOptions = {}): FetchFunction {
  const settings = settingsOf(options)
  return async (input, init) => {
    const call = fetchCall(input, init)
    const request = replayableRequest(input, init)
    try {
      let waitedMs = 0
      for (let attempt = 0; ; attempt++) {
        const outcome = await outcomeOf(settings.fetch(...request.next()))
        if (!request.canReplay || !mayRepeat(outcome, call, settings)) return resultOf(outcome)
        if (attempt >= settings.maxRetries) return lastResultOf(outcome, attempt + 1)
        const delayMs = delayAfter(outcome, attempt, settings)
        if (waitedMs + delayMs > settings.maxWaitMs) return resultOf(outcome)
        waitedMs += delayMs
        tell(outcome, { attempt, delayMs, call, settings })
        // It is not read, and the connection is needed for the retry.
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

const RETRY_FETCH = optionTaker({
  name: 'retryFetch',
  example: '{ maxRetries: 3 }',
  forms: {
    ...RETRY_FORMS,
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
    ...OTHER_RETRY_NAMES,
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
    maxRetries: options.maxRetries ?? DEFAULT_MAX_RETRIES,
    baseMs: options.baseMs,
    capMs: options.capMs,
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

/** The result of the last permitted request. */
function lastResultOf(outcome: Outcome, calls: number): Response {
  if (outcome.response === undefined && calls > 1) throw retriesExhausted(calls, outcome.error)
  return resultOf(outcome)
}

function mayRepeat({ response, error }: Outcome, { method, headers, signal }: FetchCall, settings: Settings): boolean {
  if (signal?.aborted === true) return false
  const isSafe = settings.repeat === 'always' || IDEMPOTENT.has(method) || headers.has('idempotency-key')
  // `fetch` has one kind of error for all that may go wrong on the way.
  if (response === undefined) return wasNeverSent(error) || (isSafe && error instanceof TypeError)
  if (!settings.statuses.includes(response.status)) return false
  return isSafe || (settings.repeat === 'refused' && isDenial(response))
}

function isDenial({ status, headers }: Response): boolean {
  return status === 429 || (status === 503 && headers.has('retry-after'))
}

function delayAfter({ response }: Outcome, attempt: number, { random, nowMs, baseMs, capMs }: Settings): number {
  const announcedMs = response === undefined ? 0 : (retryAfterMsOf(response, nowMs()) ?? 0)
  return Math.max(backoffDelayMs(attempt, random, { baseMs, capMs }), announcedMs)
}

interface Telling {
  readonly attempt: number
  readonly delayMs: number
  readonly call: FetchCall
  readonly settings: Settings
}

function tell({ response, error }: Outcome, { attempt, delayMs, call, settings }: Telling): void {
  settings.onRetry({ attempt, delayMs, method: call.method, url: call.url, status: response?.status, error })
}
