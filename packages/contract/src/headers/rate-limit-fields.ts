import type { DecisionLike, LimitReportLike } from '../checks/decision.ts'
import { wholeSeconds } from '../checks/decision.ts'

/** The two fields of draft-ietf-httpapi-ratelimit-headers-11. */
export interface RateLimitFields {
  /** What remains: one item for each limit with known remaining units; empty if there is none. */
  readonly rateLimit: string
  /** The limits: one item for each, under the same names. */
  readonly policy: string
}

/** Maximum number of announced limits: keeps the header short. */
const MOST_ANNOUNCED = 16

/** Length to which a name is cut if a number must make it unique. */
const LONGEST_NUMBERED = 200

/**
 * The `RateLimit` and `RateLimit-Policy` fields for `decision`, or undefined if it has no limit to announce. `nowMs`:
 * time of the answer, milliseconds since 1970.
 *
 * Each limit is an item under the name of its rule; if a rule has several windows, the window is part of the name. `q`
 * is the limit, `w` its window in whole seconds rounded up, `qu` what is counted if not requests, `pk` whose quota it
 * is. `r` is what remains and `t` the whole seconds, rounded up, until the full limit is available again or, for a
 * limit that denies, until the same call would be allowed. A denial has a `t` only for the limits that deny, so that
 * `Retry-After` is never earlier than any of them.
 */
export function rateLimitFields(decision: DecisionLike, nowMs: number): RateLimitFields | undefined {
  const reports = announced(decision)
  if (reports.length === 0) return undefined
  const names = namesOf(reports)
  const state: string[] = []
  const policies: string[] = []
  for (const [index, report] of reports.entries()) {
    const name = names[index]!
    const key = report.partitionKey === undefined ? '' : `;pk=${fieldBytes(report.partitionKey)}`
    if (report.remaining !== null) {
      state.push(`${name};r=${fieldInteger(report.remaining)}${resetOf(report, decision.allowed, nowMs)}${key}`)
    }
    policies.push(`${name};q=${fieldInteger(report.limit)}${unitOf(report)}${windowOf(report)}${key}`)
  }
  return { rateLimit: state.join(', '), policy: policies.join(', ') }
}

/** The limits to announce: the decided ones, or the decision itself if it concerns only one limit. */
function announced(decision: DecisionLike): readonly LimitReportLike[] {
  const { limits = [], reason, limit } = decision
  if (limits.length === 0) {
    // A caller on the deny list is not denied by a limit, so there is nothing to announce.
    const isListed = reason === 'denied' || (reason === 'blocked' && limit === 0)
    return !isListed && isTold(decision) ? [decision] : []
  }
  const finite = limits.every(isTold) ? limits : limits.filter(isTold)
  if (finite.length <= MOST_ANNOUNCED) return finite
  // The limits that deny come first: the caller must know them.
  return finite
    .toSorted((one, other) => Number(other.retryAfterMs > 0) - Number(one.retryAfterMs > 0))
    .slice(0, MOST_ANNOUNCED)
}

function isTold({ limit, announce }: Pick<LimitReportLike, 'limit' | 'announce'>): boolean {
  return announce !== false && Number.isFinite(limit)
}

/** A unique, encoded name for each limit. */
function namesOf(reports: readonly LimitReportLike[]): readonly string[] {
  if (reports.length === 1) return [fieldString(reports[0]!.rule)]
  const rules = reports.map(({ rule }) => rule)
  const taken = new Set<string>()
  return reports.map(({ rule, windowMs }) => {
    const isAlone = rules.indexOf(rule) === rules.lastIndexOf(rule)
    let name = fieldString(isAlone || windowMs === undefined ? rule : `${rule}:${spanOf(windowMs)}`)
    for (let number = 2; taken.has(name); number++) name = fieldString(`${rule.slice(0, LONGEST_NUMBERED)}:${number}`)
    taken.add(name)
    return name
  })
}

function spanOf(windowMs: number): string {
  return windowMs % 1000 === 0 ? `${windowMs / 1000}s` : `${windowMs}ms`
}

function resetOf({ resetAt, retryAfterMs }: LimitReportLike, isAllowed: boolean, nowMs: number): string {
  if (isAllowed) return resetAt > 0 ? seconds('t', wholeSeconds(resetAt - nowMs)) : ''
  return retryAfterMs > 0 ? seconds('t', wholeSeconds(retryAfterMs)) : ''
}

function windowOf({ windowMs }: LimitReportLike): string {
  return windowMs !== undefined && windowMs > 0 ? seconds('w', wholeSeconds(windowMs)) : ''
}

function unitOf({ quotaUnit }: LimitReportLike): string {
  return quotaUnit === undefined || quotaUnit === 'requests' ? '' : `;qu=${fieldString(quotaUnit)}`
}

/** A parameter in seconds; none if it is infinite. */
function seconds(name: string, value: number): string {
  return Number.isFinite(value) ? `;${name}=${fieldInteger(value)}` : ''
}

/** Largest integer of a structured field (RFC 9651): 15 digits. */
const LARGEST_INTEGER = 999_999_999_999_999

/** Maximum length of a string before escaping. */
const LONGEST_TEXT = 256

const PRINTABLE = /^[ !#-$&-[\]-~]*$/
const UNPRINTABLE = /[^ -~]|%/gu
const ESCAPED = /["\\]/g

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** An Integer of a structured field: `value` without its fraction, 0 to 15 digits; 0 if it is not a number. */
export function fieldInteger(value: number): string {
  if (value >= LARGEST_INTEGER) return String(LARGEST_INTEGER)
  return value > 0 ? String(Math.floor(value)) : '0'
}

/**
 * A String of a structured field. It can only contain printable ASCII: all other characters, and `%`, are
 * percent-encoded as in a URL, so that different strings stay different. Long strings are cut.
 */
export function fieldString(text: string): string {
  const short = text.length > LONGEST_TEXT ? text.slice(0, LONGEST_TEXT) : text
  if (PRINTABLE.test(short)) return `"${short}"`
  const ascii = short.toWellFormed().replace(UNPRINTABLE, (character) => encodeURIComponent(character))
  return `"${ascii.replace(ESCAPED, '\\$&')}"`
}

/** A Byte Sequence of a structured field: base64 between colons. */
export function fieldBytes(bytes: Uint8Array): string {
  let text = ''
  for (let index = 0; index < bytes.length; index += 3) {
    const [one = 0, two, three] = bytes.subarray(index, index + 3)
    const word = (one << 16) | ((two ?? 0) << 8) | (three ?? 0)
    text += BASE64[word >> 18]! + BASE64[(word >> 12) & 63]!
    text += two === undefined ? '=' : BASE64[(word >> 6) & 63]!
    text += three === undefined ? '=' : BASE64[word & 63]!
  }
  return `:${text}:`
}
