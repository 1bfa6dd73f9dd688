import { SluiceError } from '../../errors.ts'
import { nameSpace } from '../../fingerprint.ts'
import type { Limit } from '../../rule/limit.ts'
import { compileRule } from '../../rule-kinds.ts'
import type { DescriptorAlgorithm, DescriptorUnit } from '../rule-set/descriptor-domain.ts'

/** Largest number of requests per unit: the protocol has 32 bits for it. */
export const LARGEST_PER_UNIT = 4_294_967_295

/**
 * Windows are cut at multiples of these since 1970; a month is 30 days and a year 365, as the protocol's first server
 * has it.
 */
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

/** A domain's name that can stand in the name of a rule as it is. */
const PLAIN_NAME = /^[A-Za-z0-9_.:/*@-]{1,80}$/

const MS_PER_SECOND = 1000

/** Limits kept to be used again. Requests may bring any number of them along. */
const MOST_KEPT = 1000

/** So much in each window, by an algorithm. */
export interface RequestsPerWindow {
  readonly windowMs: number
  readonly requestsPerUnit: number
  readonly algorithm: DescriptorAlgorithm
}

/** So much in each window of a unit. */
export interface RequestsPerUnit {
  readonly unit: DescriptorUnit
  /** Whole, 0 to 4,294,967,295. 0 denies all. */
  readonly requestsPerUnit: number
}

/**
 * The limits of one domain. Their counters belong to domain, unit and key, not to the place in the tree: when a rule is
 * changed, moved or made more specific, callers go on with what they have used.
 */
export class DomainLimits {
  readonly #name: string
  readonly #kept = new Map<string, Limit>()

  constructor(domain: string) {
    this.#name = nameOf(domain)
  }

  /** The same object for the same numbers, as a rule. `SLUICE_INVALID_OPTION` when they cannot be used. */
  of({ unit, requestsPerUnit }: RequestsPerUnit): Limit {
    const id = `${requestsPerUnit} ${unit}`
    const kept = this.#kept.get(id)
    if (kept !== undefined) return kept
    const limit = this.#compile(unit, requestsPerUnit)
    if (this.#kept.size >= MOST_KEPT) this.#kept.clear()
    this.#kept.set(id, limit)
    return limit
  }

  /** The limit of a window that is no unit, or of another algorithm. It has counters of its own. */
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

/** The unit that is as long as a window; undefined if there is none. */
export function unitOf(windowMs: number): DescriptorUnit | undefined {
  const seconds = windowMs / MS_PER_SECOND
  return UNITS.find((unit) => UNIT_SECONDS[unit] === seconds)
}

/** Length of a unit. */
export function unitMs(unit: DescriptorUnit): number {
  return UNIT_SECONDS[unit] * MS_PER_SECOND
}

/** The domain as part of a rule's name. Two domains may not meet in it: what would be lost is made up for by a hash. */
function nameOf(domain: string): string {
  if (PLAIN_NAME.test(domain)) return domain
  const { space0, space1 } = nameSpace(domain)
  const hash = [space0, space1].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
  return `${domain.slice(0, 40).replace(/[^A-Za-z0-9_.:/*@-]/g, '-')}@${hash}`
}
