import type { Clock, Rule } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'

/** Requests to make: the same number for each node, spread evenly over all callers, which go round the nodes. */
export interface Burst {
  readonly nodes: readonly string[]
  readonly requestsPerNode: number
}

/** Result of a burst. */
export interface BurstOutcome {
  /** Requests approved for each node, in the order of the nodes. */
  readonly approvedPerNode: readonly number[]
  /** Real time from the release of the callers to the last answer, in milliseconds. */
  readonly ms: number
}

/** One rule on one store, and callers for it. Its time stands still unless it is moved. */
export interface TestBed {
  /** Makes all requests of the burst: every caller is ready before any is released. */
  release(burst: Burst): Promise<BurstOutcome>
  /**
   * Moves time to the instant at which the full limit of the node is available again, or resets its counters. Resolves
   * with false if neither is possible.
   */
  moveToReset(node: string): Promise<boolean>
  /** Frees what is held. */
  close(): Promise<void>
}

/** A store to run the tests on. */
export interface Target {
  /** Real threads, or processes, that make the requests of a burst at the same time. */
  readonly threads: number
  /** The window of rules, for a store that counts in real time. Default: that of the rules. */
  readonly windowSeconds?: number
  /** What is tested, where it has a rule of its own. The algorithms are not tried one by one then. */
  readonly title?: string
  /** A test bed with counters of its own. One at a time: it is closed before the next is made. */
  prepare(rule: Rule, maxRequests: number): Promise<TestBed>
  /** Frees what is held, threads and processes included. */
  close(): Promise<void>
}

/** What a store under test is made with. */
export interface TargetOptions {
  /** Threads wanted, or processes for a store that processes share; a store that cannot be shared uses one thread. */
  readonly threads: number
  /** The Redis to run on; without it, a store on Redis starts a server of its own. */
  readonly redisUrl: string | undefined
  /** Prints a text and a line end that are not part of the report. */
  readonly printError: (text: string) => void
  /** Real time, for what a test took. */
  readonly stopwatch: Clock
}

/** The share of each of `parts` in `total`: whole numbers that differ by 1 at most and add up to it. */
export function evenShares(total: number, parts: number): number[] {
  return Array.from({ length: parts }, (_, part) => Math.floor((total + part) / parts))
}

/** Makes a request for a node; whether it is approved. */
export type Ask = (node: string) => boolean | Promise<boolean>

/** Makes the requests of a burst, `atOnce` of them at any time. Resolves with the approvals of each node. */
export async function approvalsOf(burst: Burst, atOnce: number, ask: Ask): Promise<number[]> {
  const { nodes, requestsPerNode } = burst
  const approvedPerNode = nodes.map(() => 0)
  const requests = nodes.length * requestsPerNode
  let next = 0
  const caller = async (): Promise<void> => {
    for (let request = next++; request < requests; request = next++) {
      const index = request % nodes.length
      if (await ask(nodes[index]!)) approvedPerNode[index]! += 1
    }
  }
  await Promise.all(Array.from({ length: atOnce }, caller))
  return approvedPerNode
}

/** Makes each request of a burst in a task of its own. All tasks are ready before any is released. */
export async function releaseTasks(burst: Burst, stopwatch: Clock, ask: Ask): Promise<BurstOutcome> {
  const { nodes, requestsPerNode } = burst
  const gate = Promise.withResolvers<void>()
  const approvedPerNode = nodes.map(() => 0)
  const request = async (node: string, index: number): Promise<void> => {
    await gate.promise
    if (await ask(node)) approvedPerNode[index]! += 1
  }
  const requests = Array.from({ length: requestsPerNode }, () => nodes.map(request)).flat()
  const startMicros = stopwatch.nowMicros()
  gate.resolve()
  await Promise.all(requests)
  return { approvedPerNode, ms: (stopwatch.nowMicros() - startMicros) / MICROS_PER_MS }
}
