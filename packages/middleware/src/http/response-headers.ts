import type { DecisionLike, HeaderProfile, LimitReportLike } from '@sluice/contract'
import { rateLimitHeaders } from '@sluice/contract'
import type { Clock, LimitReport, Random } from '@sluice/core'
import { isLess } from '@sluice/core/internal'

const MICROS_PER_MS = 1000
const UINT32_RANGE = 0x1_00_00_00_00

/** Stores the decision announced so far on a request. Shared by all copies of this package. */
export const ANNOUNCED: unique symbol = Symbol.for('sluice.announced')

interface Marked {
  [ANNOUNCED]?: DecisionLike
}

/** Window and unit of a limit, which headers announce with its number. */
export type LimitDescription = Pick<LimitReport, 'windowMs' | 'quotaUnit'>

/** How headers are written. */
export interface HeaderWriterOptions {
  readonly profile: HeaderProfile
  /** See `RateLimitOptions`. */
  readonly jitter: number
  readonly clock: Clock
  readonly random: Random
}

/**
 * Writes rate limit headers. With several limiters before one handler, each announces the combined result so far, so
 * that a wide limit never hides a narrow one.
 */
export class HeaderWriter {
  readonly #profile: HeaderProfile
  readonly #jitter: number
  readonly #clock: Clock
  readonly #random: Random

  constructor({ profile, jitter, clock, random }: HeaderWriterOptions) {
    this.#profile = profile
    this.#jitter = jitter
    this.#clock = clock
    this.#random = random
  }

  /**
   * Headers for `decision`, which is remembered on `context`. `description` describes the limit if the decision does
   * not.
   */
  write(decision: DecisionLike, context: unknown, description: LimitDescription | undefined): Record<string, string> {
    const told = this.#profile === 'off' ? decision : joined(context as Marked, this.#explained(decision, description))
    const jitter = told.allowed || this.#jitter === 0 ? 0 : (this.#jitter * this.#random.nextUint32()) / UINT32_RANGE
    return rateLimitHeaders(told, this.#clock.nowMicros() / MICROS_PER_MS, { profile: this.#profile, jitter })
  }

  /** Legacy headers carry no description, so the decision stays as it is. */
  #explained(decision: DecisionLike, description: LimitDescription | undefined): DecisionLike {
    if (this.#profile === 'legacy' || description === undefined || !Number.isFinite(decision.limit)) return decision
    if (decision.limits !== undefined && decision.limits.length > 0) return decision
    const { rule, limit, remaining, resetAt, retryAfterMs } = decision
    const { windowMs, quotaUnit } = description
    return { ...decision, limits: [{ rule, limit, remaining, resetAt, retryAfterMs, windowMs, quotaUnit }] }
  }
}

/** Combined decision of a request. Nothing is checked after a denial, so either the later one denies or both allow. */
function joined(context: Marked, decision: DecisionLike): DecisionLike {
  const before = context[ANNOUNCED]
  const told = before === undefined ? decision : narrower(before, decision)
  context[ANNOUNCED] = told
  return told
}

function narrower(before: DecisionLike, decision: DecisionLike): DecisionLike {
  const isNarrower = decision.announce === false || isLess(before.remaining, decision.remaining)
  const isEarlier = decision.allowed && before.announce !== false && isNarrower
  return { ...(isEarlier ? before : decision), limits: [...reportsOf(before), ...reportsOf(decision)] }
}

function reportsOf(decision: DecisionLike): readonly LimitReportLike[] {
  const { limits = [], limit } = decision
  if (limits.length > 0) return limits
  return Number.isFinite(limit) ? [decision] : []
}
