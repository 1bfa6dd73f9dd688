import { parseHttpDate } from './http-date.ts'
import { parseFieldList } from './structured-field-parser.ts'

/** Larger numbers are instants in seconds since 1970, not durations: 1e9 seconds are 31 years. */
const FIRST_INSTANT_SECONDS = 1e9

/** Larger numbers are instants in milliseconds. */
const FIRST_INSTANT_MS = 1e11

/** Prefixes of the widely used headers; without `X-` in the first drafts of the standard. */
const LEGACY_PREFIXES = ['x-ratelimit', 'ratelimit']

/**
 * Milliseconds after which to retry according to an answer; undefined if it does not say. `Retry-After` takes
 * precedence, as the standards require; then {@link exhaustedForMs}. `nowMs`: when the answer arrived.
 */
export function retryAfterMsOf({ headers, status }: Response, nowMs: number): number | undefined {
  return retryAfterMs(headers, nowMs) ?? exhaustedForMs(headers, nowMs, status === 429)
}

/**
 * The wait of `Retry-After` (RFC 9110): a number of seconds, or a date, which is compared with the `Date` of the same
 * answer if it has one, so that clocks need not agree. 0 for a past date; undefined for anything else.
 */
function retryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const value = headers.get('retry-after')?.trim() ?? ''
  if (/^\d{1,15}$/.test(value)) return Number(value) * 1000
  const at = parseHttpDate(value, nowMs)
  return at === undefined ? undefined : Math.max(0, at - senderNowMs(headers, nowMs))
}

/**
 * Milliseconds for which nothing remains, according to the headers that announce limits; undefined if something
 * remains, or if it is unknown. Understands `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11 and, if that is
 * missing or malformed, `X-RateLimit-Remaining`, `-Reset-After` and `-Reset` (seconds from now, or an instant in
 * seconds or milliseconds; also without `X-`). Cached answers are ignored. `isDenied`: nothing remains, even if the
 * headers do not say so.
 */
export function exhaustedForMs(headers: Headers, nowMs: number, isDenied: boolean): number | undefined {
  if (Number(headers.get('age') ?? 0) > 0) return undefined
  const field = headers.get('ratelimit')
  const seconds = field === null ? undefined : spentForSeconds(field)
  if (seconds !== undefined) return seconds === 'not spent' ? undefined : seconds * 1000
  for (const prefix of LEGACY_PREFIXES) {
    const remaining = numberOf(headers.get(`${prefix}-remaining`))
    if (remaining === undefined ? !isDenied : remaining > 0) continue
    const waitMs = legacyResetMs(headers, prefix, nowMs)
    if (waitMs !== undefined) return waitMs
  }
  return undefined
}

/** The longest wait of the exhausted quotas; undefined for a field that is ignored. */
function spentForSeconds(field: string): number | 'not spent' | undefined {
  const items = parseFieldList(field)
  if (items === undefined || items.length === 0) return undefined
  let longest: number | 'not spent' = 'not spent'
  for (const { kind, parameters } of items) {
    const [remaining, reset] = [parameters.get('r'), parameters.get('t')]
    const isWellFormed = [remaining, reset].every((value) => value === undefined || isCount(value))
    if (kind !== 'string' || remaining === undefined || !isWellFormed) return undefined
    if (remaining.text !== '0' || reset === undefined) continue
    longest = Math.max(longest === 'not spent' ? 0 : longest, Number(reset.text))
  }
  return longest
}

function isCount({ kind, text }: { readonly kind: string; readonly text: string }): boolean {
  return kind === 'integer' && !text.startsWith('-')
}

function legacyResetMs(headers: Headers, prefix: string, nowMs: number): number | undefined {
  const after = numberOf(headers.get(`${prefix}-reset-after`))
  if (after !== undefined) return Math.ceil(after * 1000)
  const reset = numberOf(headers.get(`${prefix}-reset`))
  if (reset === undefined) return undefined
  if (reset < FIRST_INSTANT_SECONDS) return Math.ceil(reset * 1000)
  const at = reset < FIRST_INSTANT_MS ? reset * 1000 : reset
  return Math.max(0, Math.ceil(at - senderNowMs(headers, nowMs)))
}

function numberOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}(?:\.\d{1,9})?$/.test(text.trim()) ? Number(text) : undefined
}

/** The clock of the sender, as far as it is known. */
function senderNowMs(headers: Headers, nowMs: number): number {
  return parseHttpDate(headers.get('date')?.trim() ?? '', nowMs) ?? nowMs
}
