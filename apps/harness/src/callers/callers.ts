import type { Clock, Timers } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { HarnessError } from '../tests/harness-error.ts'
import type { Burst, BurstOutcome } from '../tests/test-bed.ts'
import { evenShares } from '../tests/test-bed.ts'

/** What a caller answers; `approvedPerNode` when it has made its requests, in the order of the nodes. */
export interface Reply {
  readonly kind: 'attached' | 'ready' | 'done' | 'detached'
  readonly approvedPerNode: readonly number[]
}

/**
 * A thread or a process that makes requests. It answers each order once, and a burst twice: when ready, and when done.
 */
export interface Caller<Order> {
  send(order: Order): void
  /** What it says next. Rejects when it ends first, and when the signal says that it is waited for no longer. */
  nextReply(stuck: AbortSignal): Promise<Reply>
}

/** How callers are led. */
export interface CallersOptions {
  /** What they are, for messages. */
  readonly noun: 'threads' | 'processes'
  /** Real time, for how long a burst took. */
  readonly stopwatch: Clock
  /** For {@link CallersOptions.deadlineMs}. */
  readonly timers: Timers
  /** How long they may take for one order before they count as stuck. */
  readonly deadlineMs: number
}

/** How callers are instructed to make their requests. */
export interface BurstOrders<Order> {
  /** Tells a caller its share, which it makes when it is released. */
  readonly prepare: (share: Burst) => Order
  /** Releases all callers. */
  readonly release: () => void
}

/**
 * Callers that work on the same thing. One that fails or does not answer in time makes the call reject; they can then
 * only be ended, which is up to who started them.
 */
export class Callers<Order> {
  readonly #all: readonly Caller<Order>[]
  readonly #options: CallersOptions

  constructor(all: readonly Caller<Order>[], options: CallersOptions) {
    this.#all = all
    this.#options = options
  }

  /** Tells every caller something, and waits until all have answered `kind`. */
  async order(kind: Reply['kind'], orderFor: (caller: number) => Order): Promise<void> {
    const replies = this.#replies(kind)
    this.send(orderFor)
    await replies
  }

  /** Tells every caller something. */
  send(orderFor: (caller: number) => Order): void {
    for (const [index, caller] of this.#all.entries()) caller.send(orderFor(index))
  }

  /** Lets every caller make its share of the burst, released together when the last one is ready. */
  async burst(burst: Burst, { prepare, release }: BurstOrders<Order>): Promise<BurstOutcome> {
    const shares = evenShares(burst.requestsPerNode, this.#all.length)
    await this.order('ready', (caller) => prepare({ ...burst, requestsPerNode: shares[caller]! }))
    const { stopwatch } = this.#options
    const done = this.#replies('done')
    const startMicros = stopwatch.nowMicros()
    release()
    const replies = await done
    const ms = (stopwatch.nowMicros() - startMicros) / MICROS_PER_MS
    return { approvedPerNode: burst.nodes.map((_, node) => sum(replies.map((it) => it.approvedPerNode[node]!))), ms }
  }

  /** The next reply of every caller. */
  async #replies(kind: Reply['kind']): Promise<Reply[]> {
    const { timers, deadlineMs } = this.#options
    const stuck = new AbortController()
    const cancel = timers.schedule(deadlineMs, () => stuck.abort(this.#stuckError(kind)))
    try {
      return await Promise.all(this.#all.map((caller) => nextReply(caller, kind, stuck.signal)))
    } finally {
      cancel()
    }
  }

  #stuckError(kind: Reply['kind']): HarnessError {
    const { noun, deadlineMs } = this.#options
    return new HarnessError('SLUICE_HARNESS_CALLERS_STUCK', {
      received: `no answer "${kind}" of at least one of ${this.#all.length} ${noun}`,
      expected: `all answers within ${deadlineMs} ms`,
    })
  }
}

async function nextReply<Order>(caller: Caller<Order>, kind: Reply['kind'], stuck: AbortSignal): Promise<Reply> {
  let reply: Reply
  try {
    reply = await caller.nextReply(stuck)
  } catch (cause) {
    if (stuck.aborted) throw stuck.reason
    throw new HarnessError('SLUICE_HARNESS_CALLER_FAILED', {
      received: cause instanceof Error ? cause.message : String(cause),
      expected: `its answer "${kind}"`,
      cause,
    })
  }
  if (reply.kind === kind) return reply
  throw new HarnessError('SLUICE_HARNESS_CALLER_FAILED', { received: `"${reply.kind}"`, expected: `"${kind}"` })
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
