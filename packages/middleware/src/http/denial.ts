import type { DecisionLike } from '@sluice/contract'
import { checkAnswer, PROBLEM_MEDIA_TYPE } from '@sluice/contract'

/** Where the problem types of draft-ietf-httpapi-ratelimit-headers are registered. */
const PROBLEM_TYPES = 'https://iana.org/assignments/http-problem-types#'

const UNAVAILABLE_STATUS = 503

/** The request must not go on. */
export interface Denial {
  readonly allowed: false
  readonly decision: DecisionLike
  /** 429, or 503 when the store could not be asked and the rule says to deny then. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** A problem document (RFC 9457), as JSON. */
  readonly body: string
}

/** The body of a denial: a problem document (RFC 9457) of the types that the draft for rate limit headers defines. */
export interface DenialProblem {
  readonly type: string
  readonly title: string
  readonly status: number
  /** What happened, and what to do. */
  readonly detail: string
  /** The names of the rules that deny. */
  readonly 'violated-policies': readonly string[]
  /** Units of the limit that denied; null when it is none. */
  readonly limit: number | null
  readonly remaining: number | null
  /** When the full limit is there again, RFC 3339 in whole seconds; null when there is no such instant. */
  readonly resetAt: string | null
  /** Whole seconds after which the same call would be allowed; null when waiting does not help. */
  readonly retryAfter: number | null
}

/** Writes denials. */
export class DenialWriter {
  readonly #status: number

  /** `status` is that of denials, whatever denies; only a store that could not be asked has its own. */
  constructor(status: number) {
    this.#status = status
  }

  /** The denial that tells `decision`. `headers` are those that announce it, and get what belongs to the body. */
  deny(decision: DecisionLike, headers: Record<string, string>): Denial {
    const status = decision.reason === 'unavailable' ? UNAVAILABLE_STATUS : this.#status
    headers['Content-Type'] = PROBLEM_MEDIA_TYPE
    return { allowed: false, decision, status, headers, body: JSON.stringify(denialProblem(decision, status)) }
  }
}

/** The document that tells the denial of `decision`. */
function denialProblem(decision: DecisionLike, status: number): DenialProblem {
  const { limit, remaining, resetAt, retryAfter } = checkAnswer(decision, '')
  const { type, title, detail } = kindOf(decision, retryAfter)
  return {
    type: `${PROBLEM_TYPES}${type}`,
    title,
    status,
    detail,
    'violated-policies': violatedRules(decision),
    limit,
    remaining,
    resetAt,
    retryAfter,
  }
}

interface ProblemKind {
  readonly type: 'quota-exceeded' | 'abnormal-usage-detected' | 'temporary-reduced-capacity'
  readonly title: string
  readonly detail: string
}

function kindOf({ reason, limit }: DecisionLike, retryAfter: number | null): ProblemKind {
  switch (reason) {
    case 'unavailable':
      return {
        type: 'temporary-reduced-capacity',
        title: 'Limits cannot be checked at the moment',
        detail: `The request was not let through, because its limits could not be checked. ${advice(retryAfter ?? 1)}`,
      }
    case 'never':
      return {
        type: 'quota-exceeded',
        title: 'The request costs more than the limit',
        detail: 'It can never be let through, however long you wait. Split it into smaller ones.',
      }
    case 'blocked':
    case 'denied':
      return {
        type: 'abnormal-usage-detected',
        title: 'The caller is blocked',
        detail: retryAfter === null ? 'Waiting does not help.' : advice(retryAfter),
      }
    default:
      return { type: 'quota-exceeded', title: 'Too many requests', detail: advice(retryAfter, limit) }
  }
}

/** What a caller may do. Whoever denies without a limit has not said until when. */
function advice(retryAfter: number | null, limit = 0): string {
  if (retryAfter === null && !Number.isFinite(limit)) return 'Try again later.'
  if (retryAfter === null) return 'Waiting does not help: the limit lets nothing through.'
  return `Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
}

/** The rules that deny, each once; the one that decided when none reports for itself. */
function violatedRules({ limits = [], rule }: DecisionLike): readonly string[] {
  const rules = new Set(limits.filter((report) => report.retryAfterMs > 0).map((report) => report.rule))
  if (rules.size > 0) return [...rules]
  return rule === '' ? [] : [rule]
}
