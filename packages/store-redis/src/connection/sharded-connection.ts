import type { Random, Timers } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import type { BreakerStart, StoreError, WaitingCall } from '@sluice/core/internal'
import { Breaker, DeadlineQueue, NOT_ADMITTED, tell } from '@sluice/core/internal'
import type { BreakerOptions, BreakerState, StoreObserver } from '@sluice/core/store'
import { storeUnavailable } from '@sluice/core/store'
import type { SlotRange } from './cluster-slots.ts'
import { hashSlotOf, SLOT_COUNT, slotRanges } from './cluster-slots.ts'
import type { RedisArgument, RedisConnection } from './connection.ts'
import { serverCodeOf } from './connection.ts'

/** Options of a {@link ShardedConnection}. */
export interface ShardedConnectionOptions {
  /** A call without a reply after this time counts as a failure of its shard. */
  readonly deadlineMs: number
  readonly breaker: BreakerOptions | undefined
  readonly start: BreakerStart
  readonly timers: Timers
  readonly monotonicMs: () => number
  readonly random: Random
  readonly observe: StoreObserver | undefined
}

/** Minimum time between two requests for the slots. */
const REFRESH_TIMEOUT_MS = 1000

/** A primary and the slots it serves. */
interface Shard {
  readonly id: string
  readonly breaker: Breaker
  /** The message of its last failure. */
  lastError: string
}

/**
 * A connection to a cluster with a breaker for each primary: calls to a shard that does not reply fail at once, and
 * calls to the others are not affected. Calls are never cancelled here: a late reply still reaches the caller.
 *
 * CLUSTER SLOTS tells which primary serves a slot: at the start, and whenever a breaker opens. Until it is known, the
 * cluster is one shard. After a failover the slots belong to a new shard, whose breaker is closed.
 */
export class ShardedConnection implements RedisConnection {
  readonly client: string
  readonly isCluster = true
  readonly writesLater: boolean
  readonly #inner: RedisConnection
  readonly #options: ShardedConnectionOptions
  readonly #deadlines: DeadlineQueue
  #shards: readonly Shard[]
  /** The index in `#shards` of each slot. */
  #shardIndexOf = new Uint16Array(SLOT_COUNT)
  #areSlotsKnown = false
  #refreshedAtMs = Number.NEGATIVE_INFINITY
  #state: BreakerState = 'closed'

  constructor(inner: RedisConnection, options: ShardedConnectionOptions) {
    this.client = inner.client
    this.writesLater = inner.writesLater === true
    this.#inner = inner
    this.#options = options
    this.#deadlines = new DeadlineQueue(options)
    this.#shards = [this.#newShard('all')]
  }

  /** The worst state of any shard: `open` when at least one is open. */
  get state(): BreakerState {
    return this.#state
  }

  isReady(): boolean {
    return this.#inner.isReady()
  }

  obstacle(): Error | undefined {
    return this.#inner.obstacle?.()
  }

  async send(command: readonly RedisArgument[], key: string): Promise<unknown> {
    if (!this.#areSlotsKnown) this.#refresh()
    if (key === '') return await this.#inner.send(command, key)
    const { monotonicMs } = this.#options
    const shard = this.#shards[this.#shardIndexOf[hashSlotOf(key)]!]!
    const { breaker } = shard
    const nowMs = monotonicMs()
    const ticket = breaker.admit(nowMs)
    if (ticket === NOT_ADMITTED) throw breakerOpen(shard)
    const call = new ShardCall(shard, ticket)
    this.#deadlines.add(call, nowMs)
    try {
      const reply = await this.#inner.send(command, key)
      if (this.#finish(call)) breaker.succeeded(ticket, nowMs)
      return reply
    } catch (error) {
      if (this.#finish(call)) this.#fail(call, error)
      throw error
    }
  }

  close(): Promise<void> {
    this.#deadlines.close()
    return this.#inner.close()
  }

  /** Ends the deadline of a call. Returns false when it has passed already. */
  #finish(call: ShardCall): boolean {
    if (call.isOver) return false
    this.#deadlines.remove(call)
    return true
  }

  #fail({ shard, ticket }: ShardCall, error: unknown): void {
    const nowMs = this.#options.monotonicMs()
    const code = serverCodeOf(error)
    if (code === 'NOSCRIPT') shard.breaker.succeeded(ticket, nowMs)
    // Nothing was sent, or a slot is moving: this says nothing about the next call.
    else if (isSluiceError(error) || code === 'TRYAGAIN') shard.breaker.withdrawn(ticket)
    else {
      shard.lastError = error instanceof Error ? error.message : String(error)
      shard.breaker.failed(ticket, nowMs)
    }
  }

  #newShard(id: string): Shard {
    const { breaker, start, random } = this.#options
    const onChange = (state: BreakerState): void => {
      // Another primary may serve its slots now.
      if (state === 'open') this.#refresh()
      this.#noteState()
    }
    return { id, breaker: new Breaker({ ...breaker, random, start, onChange }), lastError: 'no reply in time' }
  }

  #noteState(): void {
    const states = new Set(this.#shards.map((shard) => shard.breaker.state))
    const worst = (['open', 'half-open'] as const).find((state) => states.has(state)) ?? 'closed'
    if (worst === this.#state) return
    this.#state = worst
    tell(this.#options.observe, { type: 'breaker', state: worst })
  }

  /** Reads the slots from any node, at most once per second. */
  #refresh(): void {
    const nowMs = this.#options.monotonicMs()
    if (nowMs - this.#refreshedAtMs < REFRESH_TIMEOUT_MS || !this.#inner.isReady()) return
    this.#refreshedAtMs = nowMs
    slotRanges((command, key) => this.#inner.send(command, key)).then(
      (ranges) => this.#update(ranges),
      // Tried again when a breaker opens the next time.
      () => undefined,
    )
  }

  #update(ranges: readonly SlotRange[]): void {
    const known = new Map(this.#shards.map((shard) => [shard.id, shard]))
    const ids = [...new Set(ranges.map(({ primary }) => primary))]
    if (ids.length === 0) return
    this.#shards = ids.map((id) => known.get(id) ?? this.#newShard(id))
    const shardIndexOf = new Uint16Array(SLOT_COUNT)
    for (const { first, last, primary } of ranges) shardIndexOf.fill(ids.indexOf(primary), first, last + 1)
    this.#shardIndexOf = shardIndexOf
    this.#areSlotsKnown = true
    this.#noteState()
  }
}

/** A call that waits for its reply. */
class ShardCall implements WaitingCall {
  sentMs = 0.5
  older: WaitingCall | undefined = undefined
  newer: WaitingCall | undefined = undefined
  isOver = false
  readonly shard: Shard
  readonly ticket: number

  constructor(shard: Shard, ticket: number) {
    this.shard = shard
    this.ticket = ticket
  }

  expire(nowMs: number): void {
    this.isOver = true
    this.shard.breaker.failed(this.ticket, nowMs)
  }
}

function breakerOpen({ id, lastError }: Shard): StoreError {
  return storeUnavailable({
    because: 'breaker',
    partial: true,
    problem: `calls to the primary ${id} of the Redis cluster are suspended, because it failed: ${lastError}`,
    action: 'Sluice retries automatically. Check that this primary runs, or that a replica takes over.',
  })
}
