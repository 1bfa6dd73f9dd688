import { FLAG, FUNCTION, isWhole, type OptionForm } from '@sluice/core/options'
import type { NowMs, Random, Sleep } from '@sluice/runtime/portable'
import { systemNowMs, systemRandom, systemSleep, systemTurnEnd } from '@sluice/runtime/portable'
import type { ClientFailureMode } from './check-answers.ts'
import { checkOptions, choiceForm, numberForm, optionTaker } from './errors/client-option-check.ts'
import { type FetchFunction, platformFetch } from './http/send-request.ts'
import { checkWaits, OTHER_RETRY_NAMES, RETRY_FORMS } from './retry/retry-options.ts'
import type { ClientRetryOptions, RetryingService } from './retry/send-with-retry.ts'

const USUAL_TIMEOUT_MS = 5000
const LONGEST_TIMEOUT_MS = 86_400_000

/** The service, and how to call it. */
export interface ClientOptions {
  /** Address of the service: `http://` or `https://`, host, port; with a path if a proxy serves it below one. */
  readonly url: string
  /**
   * API key sent with every call. The check API requires one unless the service listens on a loopback address. Default:
   * none.
   */
  readonly token?: string | undefined
  /** Timeout of a call with all its retries, in milliseconds above 0. Calls may set their own. Default: 5000. */
  readonly timeoutMs?: number | undefined
  /**
   * Result of `check`, `peek` and `batch` when the service is unavailable. Default: `throw`, so that an outage is
   * noticed, and `open` or `closed` is a deliberate choice. Calls may override it.
   */
  readonly failureMode?: ClientFailureMode | undefined
  /**
   * Whether the checks, and the reports, of one turn of the event loop are sent as one batch. Default: true. Checks may
   * override it.
   */
  readonly batch?: boolean | undefined
  /** How safe retries are made; false for none. */
  readonly retry?: ClientRetryOptions | false | undefined
  /** Sends the requests. Default: the platform's `fetch`. */
  readonly fetch?: FetchFunction | undefined
  /** Sleeps. Default: timers of the process. */
  readonly sleep?: Sleep | undefined
  /** Reads the wall clock. Default: the system clock. */
  readonly nowMs?: NowMs | undefined
  /** Source of random jitter. Default: the system's. */
  readonly random?: Random | undefined
  /** Runs a function at the end of the current turn of the event loop. Default: the platform's. */
  readonly turnEnd?: ((run: () => void) => void) | undefined
}

/** The same with all defaults. */
export interface ResolvedOptions {
  readonly service: RetryingService
  readonly timeoutMs: number
  readonly failureMode: ClientFailureMode
  readonly batch: boolean
  readonly turnEnd: (run: () => void) => void
}

/** The timeout of a call. */
export const TIMEOUT: OptionForm = numberForm(
  `milliseconds: a number above 0, at most ${LONGEST_TIMEOUT_MS}`,
  (value) => value > 0 && value <= LONGEST_TIMEOUT_MS,
)

/** Result when the service is unavailable. */
export const FAILURE_MODE: OptionForm = choiceForm('open', 'closed', 'throw')

const ADDRESS: OptionForm = {
  expected: '"http://host:port" or "https://host", with a path when the service stands behind one',
  accepts: (value) => baseOf(value) !== undefined,
  advise: addressAdvice,
  isNeeded: true,
  isSecret: true,
}

const TOKEN: OptionForm = {
  expected: 'an API key such as slk_..._..., without spaces and line ends',
  accepts: (value) => typeof value === 'string' && /^[\x21-\x7e]{1,4096}$/.test(value),
  advise: (value) =>
    typeof value === 'string' && /^bearer /i.test(value) ? 'Leave "Bearer" out: the client puts it there.' : undefined,
  isSecret: true,
}

const RETRY: OptionForm = {
  expected: 'options such as { maxRetries: 3 }, or false for never',
  accepts: (value) => value === false || (typeof value === 'object' && value !== null),
  advise: (value) => {
    if (value === true) return 'Leave it out: calls are retried where that is safe.'
    return isWhole(value, 0, 1000) ? `Write { maxRetries: ${value} }.` : undefined
  },
}

const CLIENT = optionTaker({
  name: 'createClient',
  example: '{ url: "http://127.0.0.1:8080" }',
  forms: {
    url: ADDRESS,
    token: TOKEN,
    timeoutMs: TIMEOUT,
    failureMode: FAILURE_MODE,
    batch: FLAG,
    retry: RETRY,
    fetch: FUNCTION,
    sleep: FUNCTION,
    nowMs: FUNCTION,
    random: FUNCTION,
    turnEnd: FUNCTION,
  } satisfies Record<keyof ClientOptions, OptionForm>,
  otherNames: {
    baseUrl: 'url',
    baseURL: 'url',
    address: 'url',
    endpoint: 'url',
    host: 'url',
    server: 'url',
    uri: 'url',
    apiKey: 'token',
    apikey: 'token',
    apiToken: 'token',
    accessToken: 'token',
    auth: 'token',
    authorization: 'token',
    bearer: 'token',
    key: 'token',
    timeout: 'timeoutMs',
    requestTimeout: 'timeoutMs',
    failOpen: 'failureMode',
    fallback: 'failureMode',
    mode: 'failureMode',
    onError: 'failureMode',
    attempts: 'retry',
    maxRetries: 'retry',
    maxTries: 'retry',
    retries: 'retry',
  },
  advise: (options) =>
    typeof options === 'string' || options instanceof URL ? 'Write createClient({ url }).' : undefined,
})

const CLIENT_RETRY = optionTaker({
  name: '"retry"',
  example: '{ maxRetries: 3 }',
  forms: { ...RETRY_FORMS, onRetry: FUNCTION },
  otherNames: OTHER_RETRY_NAMES,
})

/** Applies the defaults. Throws `SLUICE_CLIENT_INVALID_OPTION` for an invalid option. */
export function resolveOptions(options: ClientOptions): ResolvedOptions {
  checkOptions(options, CLIENT)
  const { token, timeoutMs = USUAL_TIMEOUT_MS, failureMode = 'throw', batch = true, retry = {} } = options
  if (retry !== false) {
    checkOptions(retry, CLIENT_RETRY)
    checkWaits(retry)
  }
  const service: RetryingService = {
    base: baseOf(options.url)!,
    token,
    fetch: options.fetch ?? platformFetch,
    sleep: options.sleep ?? systemSleep,
    nowMs: options.nowMs ?? systemNowMs,
    random: options.random ?? systemRandom,
    retry: retry === false ? { maxRetries: 0 } : retry,
  }
  return { service, timeoutMs, failureMode, batch, turnEnd: options.turnEnd ?? systemTurnEnd }
}

/** An address without a trailing slash; undefined if it is invalid, or has parts that are not sent. */
function baseOf(url: unknown): string | undefined {
  const { protocol, username, password, search, hash, origin, pathname } = parsedUrl(url) ?? {}
  if (pathname === undefined || (protocol !== 'http:' && protocol !== 'https:')) return undefined
  return username || password || search || hash ? undefined : `${origin}${pathname.replace(/\/+$/, '')}`
}

function addressAdvice(url: unknown): string | undefined {
  const parsed = parsedUrl(url)
  if (typeof url === 'string' && url !== '' && !url.includes('://')) return 'Put "http://" in front of it.'
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) return undefined
  return 'Leave user, password, query and fragment out of it; an API key is passed as "token".'
}

function parsedUrl(url: unknown): URL | undefined {
  const text = url instanceof URL ? url.href : url
  return typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined
}
