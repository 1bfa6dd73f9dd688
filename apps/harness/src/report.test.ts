import { describe, expect, it } from 'vitest'
import { reportJson, reportText } from './report.ts'
import type { TestResult } from './tests/admission-tests.ts'

function result(maxRequests: number, [raceMs, accuracyMs, distributedMs]: [number, number, number]): TestResult {
  return {
    algorithm: 'Fixed Window',
    maxRequests,
    race: { attempts: 5000, threads: 8, approved: maxRequests, ms: raceMs },
    accuracy: { requests: 2000, approved: maxRequests, approvedAfterReset: maxRequests, ms: accuracyMs },
    distributed: { nodes: 2, requestsPerNode: 200, approvedPerNode: [100, 100], ms: distributedMs },
  }
}

describe('reportText', () => {
  it('has one block for each limit, times in whole milliseconds', () => {
    expect(reportText('Fixed Window', [result(100, [7, 3.4, 8.5]), result(500, [0.2, 5, 3])])).toBe(
      `Algorithm: Fixed Window
-----

MaxRequests = 100
RaceTest: Approved <= 100 | Time=7ms
AccuracyTest: Approved <= 100 | Requests=2000 | Time=3ms
DistributedTest: Nodes=2, Req/Node=200 | Time=9ms

MaxRequests = 500
RaceTest: Approved <= 500 | Time=0ms
AccuracyTest: Approved <= 500 | Requests=2000 | Time=5ms
DistributedTest: Nodes=2, Req/Node=200 | Time=3ms`,
    )
  })
})

describe('reportJson', () => {
  it('has every count, one result on a line', () => {
    const results = [result(100, [7, 3.4, 8.5]), result(500, [0.2, 5, 3])]
    const json = reportJson(results)
    expect(JSON.parse(json)).toEqual(results)
    expect(json.split('\n')).toHaveLength(results.length + 2)
  })

  it('is an empty array without results', () => {
    expect(JSON.parse(reportJson([]))).toEqual([])
  })
})
