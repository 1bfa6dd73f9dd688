import { SluiceError } from '../../errors.ts'
import { nameSpace } from '../../fingerprint.ts'
import type { Limit } from '../../rule/limit.ts'
import { compileRule } from '../../rule-kinds.ts'
import type { DescriptorAlgorithm, DescriptorUnit } from '../rule-set/descriptor-domain.ts'

/** Maximum number of requests per unit: a 32-bit field in the protocol. */
export const LARGEST_PER_UNIT = 4_294_967_295

/** Windows start at multiples of these since 1970. As in envoyproxy/ratelimit, a month has 30 days and a year 365. */
const UNIT_SECONDS: Readonly<Record<DescriptorUnit, number>> = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  week: 604_800,
  month: 30 * 86_400,
  year: 365 * 86_400,
}

const UNITS = Object.keys(UNIT_SECONDS) as readonly DescriptorUnit[]

/** A domain name that is valid inside a rule name. */
const PLAIN_NAME = /^[A-Za-z0-9_.:/*@-]{1,80}$/

const MS_PER_SECOND = 1000

/** Maximum number of cached limits. Requests may carry any number of different ones. */
const MOST_KEPT = 1000

/** A number of requests per window, with an algorithm. */
export interface RequestsPerWindow {
  readonly windowMs: number
  readonly requestsPerUnit: number
  readonly algorithm: DescriptorAlgorithm
}

/** A number of requests per unit. */
export interface RequestsPerUnit {
  readonly unit: DescriptorUnit
  /** Whole, 0 to 4,294,967,295. 0 denies all. */
  readonly requestsPerUnit: number
}

/**
 * The limits of one domain. Counters belong to domain, unit and key, not to the position in the tree: if a rule is
 * changed, moved or made more specific, callers keep what they have used.
 */
export class DomainLimits {
  readonly #name: string
  readonly #kept = new Map<string, Limit>()

  constructor(domain: string) {
    this.#name = nameOf(domain)
  }

  /**
   * The limit for these numbers as a rule; equal numbers give the same object. Throws `SLUICE_INVALID_OPTION` for
   * invalid ones.
   */
  of({ unit, requestsPerUnit }: RequestsPerUnit): Limit {
    const id = `${requestsPerUnit} ${unit}`
    const kept = this.#kept.get(id)
    if (kept !== undefined) return kept
    const limit = this.#compile(unit, requestsPerUnit)
    if (this.#kept.size >= MOST_KEPT) this.#kept.clear()
    this.#kept.set(id, limit)
    return limit
  }

  /** A limit with a custom window or another algorithm. It has separate counters. */
  ofWindow({ windowMs, requestsPerUnit, algorithm }: RequestsPerWindow): Limit {
    const rule = { algorithm, limit: requestsPerUnit, window: windowMs } as const
    return compileRule(`descriptors:${algorithm}:${windowMs}ms:${this.#name}`, rule)[0]!
  }

  #compile(unit: DescriptorUnit, requestsPerUnit: number): Limit {
    if (!Object.hasOwn(UNIT_SECONDS, unit)) {
      throw new SluiceError('SLUICE_INVALID_OPTION', {
        problem: 'a descriptor has an unknown unit',
        received: unit,
        expected: `one of ${Object.keys(UNIT_SECONDS).join(', ')}`,
      })
    }
    if (!Number.isInteger(requestsPerUnit) || requestsPerUnit < 0 || requestsPerUnit > LARGEST_PER_UNIT) {
      throw new SluiceError('SLUICE_INVALID_OPTION', {
        problem: 'a descriptor has an unusable number of requests per unit',
        received: requestsPerUnit,
        expected: `a whole number from 0 to ${LARGEST_PER_UNIT}`,
      })
    }
    const window = UNIT_SECONDS[unit] * MS_PER_SECOND
    const rule = { algorithm: 'fixed-window', limit: requestsPerUnit, window } as const
    return compileRule(`descriptors:${unit}:${this.#name}`, rule)[0]!
  }
}

/** The unit with the length of a window; undefined if there is none. */
export function unitOf(windowMs: number): DescriptorUnit | undefined {
  const seconds = windowMs / MS_PER_SECOND
  return UNITS.find((unit) => UNIT_SECONDS[unit] === seconds)
}

/** Length of a unit. */
export function unitMs(unit: DescriptorUnit): number {
  return UNIT_SECONDS[unit] * MS_PER_SECOND
}

/**
 * The domain as part of a rule name. Different domains must stay different, so a hash replaces what the name cannot
 * contain.
 */
function nameOf(domain: string): string {
  if (PLAIN_NAME.test(domain)) return domain
  const { space0, space1 } = nameSpace(domain)
  const hash = [space0, space1].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
  return `${domain.slice(0, 40).replace(/[^A-Za-z0-9_.:/*@-]/g, '-')}@${hash}`
}
