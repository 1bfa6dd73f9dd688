import type { NowMs, Random, Sleep } from '@sluice/runtime/portable'
import { systemNowMs, systemRandom, systemSleep, systemTurnEnd } from '@sluice/runtime/portable'
import type { ClientFailureMode } from './failure-answer.ts'
import { type FetchFunction, platformFetch } from './fetch-function.ts'
import type { ClientRetryOptions, RepeatedService } from './repeated-exchange.ts'
import { checkTryOptions, invalidOption } from './retry-options.ts'

const USUAL_TIMEOUT_MS = 5000
const LONGEST_TIMEOUT_MS = 86_400_000

const MODES: ReadonlySet<unknown> = new Set<ClientFailureMode>(['open', 'closed', 'throw'])

/** Which service, and how it is asked. */
export interface ClientOptions {
  /** Where the service is: `http://` or `https://`, host, port; a path when it stands behind one. */
  readonly url: string
  /** An API key, sent with every call; none when left out, which the check API does not need unless it is told to ask. */
  readonly token?: string | undefined
  /** Milliseconds, above 0, that a call may take with all its tries; 5000 when left out. Calls may say their own. */
  readonly timeoutMs?: number | undefined
  /**
   * What `check`, `peek` and `batch` give when the service cannot be asked; `throw` when left out: an outage is then seen, and
   * whoever wants to be open or closed says so. Calls may say their own.
   */
  readonly failureMode?: ClientFailureMode | undefined
  /** Whether the checks of one turn of the event loop go as one batch; true when left out. Calls may say their own. */
  readonly batch?: boolean | undefined
  /** How calls are tried again where that is safe; false for never. */
  readonly retry?: ClientRetryOptions | false | undefined
  /** What requests are sent with; the platform's when left out. */
  readonly fetch?: FetchFunction | undefined
  /** Waits; on timers of the process when left out. */
  readonly sleep?: Sleep | undefined
  /** Reads the wall clock; that of the system when left out. */
  readonly nowMs?: NowMs | undefined
  /** Source of the jitter between tries; that of the system when left out. */
  readonly random?: Random | undefined
  /** Runs something at the end of this turn of the event loop; that of the system when left out. */
  readonly turnEnd?: ((run: () => void) => void) | undefined
}

/** The same with everything filled in. */
export interface ResolvedOptions {
  readonly service: RepeatedService
  readonly timeoutMs: number
  readonly failureMode: ClientFailureMode
  readonly batch: boolean
  readonly turnEnd: (run: () => void) => void
}

/** Fills in what is left out. Throws `SLUICE_CLIENT_INVALID_OPTION` for what cannot be used. */
export function resolveOptions(options: ClientOptions): ResolvedOptions {
  const { token, timeoutMs = USUAL_TIMEOUT_MS, failureMode = 'throw', batch = true, retry = {} } = options
  if (token !== undefined && !/^[\x21-\x7e]{1,4096}$/.test(token)) {
    throw invalidOption('a token with spaces, line ends or other signs that no API key has', 'one such as slk_..._...')
  }
  if (retry !== false) checkTryOptions(retry)
  const service: RepeatedService = {
    base: baseOf(options.url),
    token,
    fetch: options.fetch ?? platformFetch,
    sleep: options.sleep ?? systemSleep,
    nowMs: options.nowMs ?? systemNowMs,
    random: options.random ?? systemRandom,
    retry: retry === false ? { maxTries: 1 } : retry,
  }
  return {
    service,
    timeoutMs: checkedTimeout(timeoutMs),
    failureMode: checkedMode(failureMode),
    batch,
    turnEnd: options.turnEnd ?? systemTurnEnd,
  }
}

/** Gives back a time that can be waited for; else throws. */
export function checkedTimeout(timeoutMs: number): number {
  if (timeoutMs > 0 && timeoutMs <= LONGEST_TIMEOUT_MS) return timeoutMs
  throw invalidOption(`timeoutMs ${timeoutMs}`, `a number above 0, at most ${LONGEST_TIMEOUT_MS}`)
}

/** Gives back a failure mode; else throws. */
export function checkedMode(mode: ClientFailureMode): ClientFailureMode {
  if (MODES.has(mode)) return mode
  throw invalidOption(`failureMode ${JSON.stringify(mode)}`, '"open", "closed" or "throw"')
}

function baseOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  // What is wrong is not shown: it may hold a password.
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw invalidOption('an address that cannot be read as one', 'http://host:port or https://host')
  }
  if (parsed.username !== '' || parsed.password !== '' || parsed.search !== '' || parsed.hash !== '') {
    throw invalidOption('an address with a user, a query or a fragment', 'scheme, host, port and path alone')
  }
  return `${parsed.origin}${parsed.pathname.replace(/\/+$/, '')}`
}
