import type { Burst, TestBed } from './test-bed.ts'

/** What the accuracy test counted. */
export interface AccuracyResult {
  /** Requests made before the reset, and as many after it. */
  readonly requests: number
  readonly approved: number
  /** Null where the limiter offers no reset. */
  readonly approvedAfterReset: number | null
  /** Both bursts together. */
  readonly ms: number
}

/** Requests in rapid succession. */
const REQUESTS = 2000

/** More requests than fit, and the same again at the instant at which the limit is announced to be there again. */
export async function accuracyTest(bed: TestBed): Promise<AccuracyResult> {
  const node = 'accuracy'
  const burst: Burst = { nodes: [node], requestsPerNode: REQUESTS }
  const before = await bed.release(burst)
  const after = (await bed.moveToReset(node)) ? await bed.release(burst) : undefined
  return {
    requests: REQUESTS,
    approved: before.approvedPerNode[0]!,
    approvedAfterReset: after?.approvedPerNode[0] ?? null,
    ms: before.ms + (after?.ms ?? 0),
  }
}
