import { describe, expect, it } from 'vitest'
import type { TestResult } from './admission-tests.ts'
import { wrongCounts } from './admission-tests.ts'

const EXACT: TestResult = {
  algorithm: 'GCRA',
  maxRequests: 500,
  race: { attempts: 5000, threads: 8, approved: 500, ms: 1 },
  accuracy: { requests: 2000, approved: 500, approvedAfterReset: 500, ms: 1 },
  distributed: { nodes: 3, requestsPerNode: 200, approvedPerNode: [200, 200, 200], ms: 1 },
}

describe('wrongCounts', () => {
  it('finds nothing when each count is the limit, or all requests where these are fewer', () => {
    expect(wrongCounts(EXACT)).toEqual([])
    expect(wrongCounts({ ...EXACT, race: { ...EXACT.race, attempts: 40, approved: 40 } })).toEqual([])
  })

  it.each([501, 499])('finds %i approved instead of 500', (count) => {
    const says = (what: string): string[] => [
      `GCRA, MaxRequests = 500: ${what} approved ${count} of ${what === 'RaceTest' ? 5000 : 2000}, expected ` +
        'exactly 500.',
    ]
    expect(wrongCounts({ ...EXACT, race: { ...EXACT.race, approved: count } })).toEqual(says('RaceTest'))
    expect(wrongCounts({ ...EXACT, accuracy: { ...EXACT.accuracy, approved: count } })).toEqual(says('AccuracyTest'))
    expect(wrongCounts({ ...EXACT, accuracy: { ...EXACT.accuracy, approvedAfterReset: count } })).toEqual(
      says('AccuracyTest after the reset'),
    )
  })

  it('finds the nodes with a wrong count or none', () => {
    const distributed = { ...EXACT.distributed, approvedPerNode: [200, 199] }
    expect(wrongCounts({ ...EXACT, distributed })).toEqual([
      'GCRA, MaxRequests = 500: DistributedTest at node 2 approved 199 of 200, expected exactly 200.',
      'GCRA, MaxRequests = 500: DistributedTest at node 3 approved 0 of 200, expected exactly 200.',
    ])
  })
})
