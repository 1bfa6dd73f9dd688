import type { TestBed } from './test-bed.ts'

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
