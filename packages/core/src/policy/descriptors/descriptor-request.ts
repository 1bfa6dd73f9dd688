import { SluiceError } from '../../errors.ts'
import { checkCost } from '../../store/batch.ts'
import type { RequestsPerUnit } from './descriptor-limit.ts'
import type { DescriptorEntry } from './descriptor-rule.ts'

/** One descriptor of a request. */
export interface RequestDescriptor {
  readonly entries: readonly DescriptorEntry[]
  /** A limit that replaces the one of the tree. */
  readonly limit?: RequestsPerUnit
  /** Units of this descriptor. Default: those of the request. 0 does not charge. */
  readonly hitsAddend?: number
  /**
   * Returns the units instead of charging them, never below 0 used. Its status is `ok`. Default: false. Returned units
   * stay returned, whatever the decision on the other descriptors is.
   */
  readonly isNegativeHits?: boolean
}

/** A request as defined by the Envoy rate limit protocol. */
export interface DescriptorRequest {
  readonly domain: string
  /** 1 to 1000. */
  readonly descriptors: readonly RequestDescriptor[]
  /** Units that each descriptor costs. Default: 1, also for 0. */
  readonly hitsAddend?: number
}

const MOST_DESCRIPTORS = 1000

/** Throws `SLUICE_INVALID_OPTION` or `SLUICE_INVALID_COST` for an invalid request. */
export function checkDescriptorRequest({ domain, descriptors, hitsAddend }: DescriptorRequest): void {
  if (typeof domain !== 'string' || domain === '') {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'the domain of a request must not be empty',
      received: domain,
      expected: 'the name of a domain',
    })
  }
  if (!Array.isArray(descriptors) || descriptors.length === 0 || descriptors.length > MOST_DESCRIPTORS) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'the descriptors of a request cannot be used',
      received: descriptors,
      expected: `1 to ${MOST_DESCRIPTORS} descriptors`,
    })
  }
  if (hitsAddend !== undefined) checkCost(hitsAddend)
  for (let index = 0; index < descriptors.length; index++) checkDescriptor(descriptors[index]!)
}

function checkDescriptor({ entries, hitsAddend }: RequestDescriptor): void {
  if (hitsAddend !== undefined) checkCost(hitsAddend)
  if (!Array.isArray(entries)) throw unusableEntries(entries)
  for (let index = 0; index < entries.length; index++) {
    const { key, value } = entries[index]!
    if (typeof key !== 'string' || typeof value !== 'string') throw unusableEntries(entries)
  }
}

function unusableEntries(entries: unknown): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the entries of a descriptor cannot be used',
    received: entries,
    expected: 'a list of { key, value }, both strings',
  })
}
