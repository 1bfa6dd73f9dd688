import type { Clock, Rule } from '@sluice/core'

/** Requests to make: so many for each node, spread evenly over all callers, which go round the nodes. */
export interface Burst {
  readonly nodes: readonly string[]
  readonly requestsPerNode: number
}

/** What became of a burst. */
export interface BurstOutcome {
  /** Requests approved for each node, in the order of the nodes. */
  readonly approvedPerNode: readonly number[]
  /** Real time from the release of the callers to the last answer, in milliseconds. */
  readonly ms: number
}

/** One rule on one store, and callers that can be let loose on it. Its time stands still unless it is moved. */
export interface TestBed {
  /** Makes all requests of the burst: every caller is ready before any is released. */
  release(burst: Burst): Promise<BurstOutcome>
  /**
   * Moves time to the instant at which the full limit of the node is announced to be there again, or resets its counters.
   * Resolves with false where there is no way to do that.
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
