import type { DecisionLike } from './decision-like.ts'
import { wholeSeconds } from './whole-seconds.ts'

/** Who is counted. */
export type Dimension = 'ip' | 'user' | 'apiKey' | 'tenant' | 'global'

/** The body of the answer to a check: status 200 when allowed, 429 when not. */
export interface CheckAnswer {
  readonly allowed: boolean
  /** `allowed`, or why not: `limit` (come back after `retryAfter`), `never` (the tokens can never fit), `blocked`. */
  readonly reason: DecisionLike['reason']
  /** Tokens of the limit that decided; null when nothing limits the call. */
  readonly limit: number | null
  /** Whole tokens left under it; null when nothing limits the call. */
  readonly remaining: number | null
  /**
   * When the full limit is there again if nothing more is taken: an RFC 3339 instant in UTC, in whole seconds rounded up,
   * such as `2025-11-05T10:05:00Z`; the same instant as `X-RateLimit-Reset`. Null when nothing limits the call.
   */
  readonly resetAt: string | null
  /**
   * Whole seconds, rounded up, after which the same call would be allowed; the same as `Retry-After`. Null when the call
   * is allowed, and when waiting does not help.
   */
  readonly retryAfter: number | null
  /** Who was counted by the limit that decided. */
  readonly dimension: Dimension
  /** Name of the rule that decided. */
  readonly rule: string
  /** Names this decision in logs and in later calls about it; absent when the service keeps none. */
  readonly decisionId?: string
}

/** The answer that tells `decision`. */
export function checkAnswer(decision: DecisionLike, dimension: Dimension): CheckAnswer {
  const { allowed, reason, rule, limit, remaining, resetAt, retryAfterMs } = decision
  const isLimited = Number.isFinite(limit)
  return {
    allowed,
    reason,
    limit: isLimited ? limit : null,
    remaining: isLimited ? remaining : null,
    resetAt: isLimited && Number.isFinite(resetAt) ? instant(resetAt) : null,
    retryAfter: allowed || !Number.isFinite(retryAfterMs) ? null : wholeSeconds(retryAfterMs),
    dimension,
    rule,
  }
}

/**
 * `answer` as JSON: the same text as `JSON.stringify` gives. Written out because every check ends here, and the general
 * way costs a tenth of what a server spends on a request.
 */
export function checkAnswerJson(answer: CheckAnswer): string {
  const { allowed, reason, limit, remaining, resetAt, retryAfter, dimension, rule, decisionId } = answer
  const reset = resetAt === null ? 'null' : `"${resetAt}"`
  const id = decisionId === undefined ? '' : `,"decisionId":${JSON.stringify(decisionId)}`
  return `{"allowed":${allowed},"reason":"${reason}","limit":${limit},"remaining":${remaining},"resetAt":${reset},"retryAfter":${retryAfter},"dimension":"${dimension}","rule":${JSON.stringify(rule)}${id}}`
}

const SECONDS_PER_DAY = 86_400
const TWO_DIGITS = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))
let lastDay = { number: 0, text: '1970-01-01' }

/**
 * The instant as RFC 3339 in whole seconds, rounded up. `Date` is asked once a day and not for each answer, where it
 * would cost as much as the decision itself.
 */
function instant(ms: number): string {
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
