import type { Burst, TestBed } from './test-bed.ts'

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

/** What the distributed test counted. */
export interface DistributedResult {
  readonly nodes: number
  readonly requestsPerNode: number
  /** One count for each node. */
  readonly approvedPerNode: readonly number[]
  readonly ms: number
}

const NODES = 20
const REQUESTS_PER_NODE = 200

/** Requests for many nodes at once: every thread or process asks for every node. */
export async function distributedTest(bed: TestBed): Promise<DistributedResult> {
  const nodes = Array.from({ length: NODES }, (_, index) => `node-${index + 1}`)
  const { approvedPerNode, ms } = await bed.release({ nodes, requestsPerNode: REQUESTS_PER_NODE })
  return { nodes: NODES, requestsPerNode: REQUESTS_PER_NODE, approvedPerNode, ms }
}

/** What the three tests counted for one algorithm and one limit. */
export interface TestResult {
  /** The title of the algorithm. */
  readonly algorithm: string
  readonly maxRequests: number
  readonly race: RaceResult
  readonly accuracy: AccuracyResult
  readonly distributed: DistributedResult
}

/** Every count that is not exactly what the limit says, one sentence each; none when the limit held. */
export function wrongCounts({ algorithm, maxRequests, race, accuracy, distributed }: TestResult): string[] {
  const counts: [what: string, requests: number, approved: number][] = [
    ['RaceTest', race.attempts, race.approved],
    ['AccuracyTest', accuracy.requests, accuracy.approved],
  ]
  if (accuracy.approvedAfterReset !== null) {
    counts.push(['AccuracyTest after the reset', accuracy.requests, accuracy.approvedAfterReset])
  }
  for (let node = 0; node < distributed.nodes; node++) {
    const approved = distributed.approvedPerNode[node] ?? 0
    counts.push([`DistributedTest at node ${node + 1}`, distributed.requestsPerNode, approved])
  }
  return counts
    .filter(([, requests, approved]) => approved !== Math.min(requests, maxRequests))
    .map(([what, requests, approved]) => {
      const expected = Math.min(requests, maxRequests)
      return (
        `${algorithm}, MaxRequests = ${maxRequests}: ${what} approved ${approved} of ${requests}, expected ` +
        `exactly ${expected}.`
      )
    })
}
