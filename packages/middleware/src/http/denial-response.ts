import type { DecisionLike } from '@sluice/contract'
import { checkAnswer, PROBLEM_MEDIA_TYPE } from '@sluice/contract'

/** Registry of the problem types of draft-ietf-httpapi-ratelimit-headers. */
const PROBLEM_TYPES = 'https://iana.org/assignments/http-problem-types#'

const UNAVAILABLE_STATUS = 503

/** The request is denied. */
export interface Denial {
  readonly allowed: false
  readonly decision: DecisionLike
  /** 429, or 503 when the store is unavailable and the failure mode is `closed`. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** A problem document (RFC 9457), as JSON. */
  readonly body: string
}

/** Body of a denial: a problem document (RFC 9457) with the types of the rate limit headers draft. */
export interface DenialProblem {
  readonly type: string
  readonly title: string
  readonly status: number
  /** What happened and what to do. */
  readonly detail: string
  /** Names of the rules that deny. */
  readonly 'violated-policies': readonly string[]
  /** Limit that denied the request, in units. Null if there is none. */
  readonly limit: number | null
  readonly remaining: number | null
  /** When the full limit is available again: RFC 3339, whole seconds. Null if never. */
  readonly resetAt: string | null
  /** Whole seconds until the same request is allowed. Null if waiting does not help. */
  readonly retryAfter: number | null
}

/** Creates denials. */
export class DenialWriter {
  readonly #status: number

  /** `status` applies to every denial, except that an unavailable store is answered with 503. */
  constructor(status: number) {
    this.#status = status
  }

  /** The denial for `decision`. Adds the content type to `headers`. */
  deny(decision: DecisionLike, headers: Record<string, string>): Denial {
    const status = decision.reason === 'unavailable' ? UNAVAILABLE_STATUS : this.#status
    headers['Content-Type'] = PROBLEM_MEDIA_TYPE
    return { allowed: false, decision, status, headers, body: JSON.stringify(denialProblem(decision, status)) }
  }
}

/** The problem document for a denied decision. */
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

/** What the caller can do. A denial without a limit gives no time to retry. */
function advice(retryAfter: number | null, limit = 0): string {
  if (retryAfter === null && !Number.isFinite(limit)) return 'Try again later.'
  if (retryAfter === null) return 'Waiting does not help: the limit lets nothing through.'
  return `Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
}

/** The denying rules that are announced to callers, each once. Falls back to the deciding rule. */
function violatedRules({ limits = [], rule, announce }: DecisionLike): readonly string[] {
  const told = limits.filter((report) => report.retryAfterMs > 0 && report.announce !== false)
  if (told.length > 0) return [...new Set(told.map((report) => report.rule))]
  return rule === '' || announce === false ? [] : [rule]
}
