import type { DecisionLike, DecisionReason, FailureLike } from './decision.ts'
import { wholeSeconds } from './decision.ts'

/**
 * Who is counted: `ip`, `user`, `apiKey`, `tenant`, `service`, `global` (all together), the name of a descriptor, or
 * several joined by `+`, such as `tenant+user`.
 */
export type Dimension = string

/** The body of the answer to a check: status 200 when allowed, 429 when not. */
export interface CheckAnswer {
  readonly allowed: boolean
  /**
   * Allowed: `allowed`, `exempt` (no rule holds for it), `unlimited` (no rule applies to it). Denied: `limit` (come
   * back after `retryAfter`), `never` (the tokens can never fit), `blocked`, `denied` (on the deny list), `unavailable`
   * (the store could not be asked, and the failure mode of the rule is closed).
   */
  readonly reason: DecisionReason
  /** Tokens of the limit that decided; null when nothing limits the call. */
  readonly limit: number | null
  /**
   * Whole tokens left under it. Null when nothing limits the call (`limit` is null too), and when it is unknown: the
   * store did not answer, and the call was allowed without it (`failure` says why).
   */
  readonly remaining: number | null
  /**
   * When the full limit is there again if nothing more is taken: an RFC 3339 instant in UTC, in whole seconds rounded
   * up, such as `2025-11-05T10:05:00Z`; the same instant as `X-RateLimit-Reset`. Null when `remaining` is null, and
   * when there is no such instant.
   */
  readonly resetAt: string | null
  /**
   * Whole seconds, rounded up, after which the same call would be allowed; `Retry-After` is the same, or later where it
   * is spread. Null when the call is allowed, and when waiting does not help.
   */
  readonly retryAfter: number | null
  /** Who was counted by the limit that decided; empty when there is none. */
  readonly dimension: Dimension
  /** Name of the rule that decided, or of the entry of the deny list or exemption; empty when there is none. */
  readonly rule: string
  /** Names this decision in logs and in later calls about it; absent when the service keeps none. */
  readonly decisionId?: string | undefined
  /** Number of the rule set that decided; absent where rule sets have none. */
  readonly version?: number | undefined
  /** Milliseconds that an admitted call must wait for its turn, above 0; absent when it need not. */
  readonly delayMs?: number | undefined
  /** Set when the store could not be asked and this was decided without it; else absent. */
  readonly failure?: FailureLike | undefined
}

/** The answer to a batch: one for each request, in their order. Status 200, whatever they say. */
export interface BatchAnswer {
  readonly answers: readonly CheckAnswer[]
}

/** The answer that tells `decision`. `dimension` is that of its rule; `decisionId` names it, where it has a name. */
export function checkAnswer(decision: DecisionLike, dimension: Dimension, decisionId?: string): CheckAnswer {
  const { allowed, reason, rule, limit, remaining, resetAt, retryAfterMs, version, delayMs, failure } = decision
  const isLimited = Number.isFinite(limit)
  return {
    allowed,
    reason,
    limit: isLimited ? limit : null,
    remaining: isLimited ? remaining : null,
    resetAt: isLimited ? instantText(resetAt) : null,
    retryAfter: allowed || !Number.isFinite(retryAfterMs) ? null : wholeSeconds(retryAfterMs),
    dimension,
    rule,
    decisionId,
    version,
    delayMs: delayMs !== undefined && delayMs > 0 ? delayMs : undefined,
    failure,
  }
}

/**
 * `answer` as JSON: the same text as `JSON.stringify` gives. Written out because every check ends here, and the general
 * way costs a tenth of what a server spends on a request.
 */
export function checkAnswerJson(answer: CheckAnswer): string {
  const { allowed, reason, limit, remaining, resetAt, retryAfter, dimension, rule } = answer
  const { decisionId, version, delayMs, failure } = answer
  const reset = resetAt === null ? 'null' : `"${resetAt}"`
  let json =
    `{"allowed":${allowed},"reason":"${reason}","limit":${limit},"remaining":${remaining},` +
    `"resetAt":${reset},"retryAfter":${retryAfter},"dimension":${quoted(dimension)},"rule":${quoted(rule)}`
  if (decisionId !== undefined) json += `,"decisionId":${quoted(decisionId)}`
  if (version !== undefined) json += `,"version":${version}`
  if (delayMs !== undefined) json += `,"delayMs":${delayMs}`
  if (failure !== undefined) {
    json += `,"failure":{"mode":"${failure.mode}","cause":"${failure.cause}","charged":"${failure.charged}"}`
  }
  return `${json}}`
}

/**
 * The answers to a batch, in the order of its requests, as JSON: the same text as `JSON.stringify({ answers })` gives.
 */
export function batchAnswerJson(answers: readonly CheckAnswer[]): string {
  return `{"answers":[${answers.map(checkAnswerJson).join()}]}`
}

/** A text in JSON. Nearly all are plain and short: a look at each character is quicker than `JSON.stringify`. */
function quoted(text: string): string {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < SPACE || code > TILDE || code === QUOTE || code === BACKSLASH) return JSON.stringify(text)
  }
  return `"${text}"`
}

const SPACE = 0x20
const TILDE = 0x7e
const QUOTE = 0x22
const BACKSLASH = 0x5c

const SECONDS_PER_DAY = 86_400
const TWO_DIGITS = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))
let lastDay = { number: 0, text: '1970-01-01' }

/**
 * An instant in milliseconds since 1970 as RFC 3339 in whole seconds, rounded up. Null for 0 and `Infinity`: there is
 * no such instant. `Date` is called once a day: once per answer, it would cost as much as the decision itself.
 */
export function instantText(ms: number): string | null {
  if (!(ms > 0) || !Number.isFinite(ms)) return null
  const seconds = wholeSeconds(ms)
  const day = Math.floor(seconds / SECONDS_PER_DAY)
  if (day !== lastDay.number) {
    const [text = ''] = new Date(day * SECONDS_PER_DAY * 1000).toISOString().split('T')
    lastDay = { number: day, text }
  }
  const second = seconds % SECONDS_PER_DAY
  const [h, m, s] = [Math.floor(second / 3600), Math.floor(second / 60) % 60, second % 60]
  return `${lastDay.text}T${TWO_DIGITS[h]}:${TWO_DIGITS[m]}:${TWO_DIGITS[s]}Z`
}
