import type { AccuracyResult } from './accuracy-test.ts'
import type { DistributedResult } from './distributed-test.ts'
import type { RaceResult } from './race-test.ts'

/** What the three tests counted for one algorithm and one limit. */
export interface TestResult {
  /** The title of the algorithm. */
  readonly algorithm: string
  readonly maxRequests: number
  readonly race: RaceResult
  readonly accuracy: AccuracyResult
  readonly distributed: DistributedResult
}
