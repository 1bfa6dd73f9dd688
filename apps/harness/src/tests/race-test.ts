import type { TestBed } from './test-bed.ts'

/** What the race test counted. */
export interface RaceResult {
  readonly attempts: number
  /** Real threads, or processes, that made the attempts. */
  readonly threads: number
  readonly approved: number
  readonly ms: number
}

/** How the race is run. */
export interface RaceSetting {
  /** Requests in all, spread over the threads or processes. */
  readonly attempts: number
  /** Threads, or processes, that the test bed has. */
  readonly threads: number
}

/** Many simultaneous attempts on one node. */
export async function raceTest(bed: TestBed, { attempts, threads }: RaceSetting): Promise<RaceResult> {
  const { approvedPerNode, ms } = await bed.release({ nodes: ['race'], requestsPerNode: attempts })
  return { attempts, threads, approved: approvedPerNode[0]!, ms }
}
