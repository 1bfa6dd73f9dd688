import type { BreakerOptions, BreakerState, Random, StoreObserver, Timers } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import type { BreakerStart, StoreError, WaitingCall } from '@sluice/core/internal'
import { Breaker, DeadlineLine, NOT_ADMITTED, storeUnavailable, tell } from '@sluice/core/internal'
import { serverCodeOf } from '../wire/script-runner.ts'
import { slotRanges } from './cluster-slots.ts'
import type { RedisArgument, RedisConnection } from './connection.ts'
import { hashSlotOf } from './hash-slot.ts'

/** What a {@link ShardedConnection} works with. */
export interface ShardedConnectionParts {
  /** A call that is not answered within it counts as a failure of its shard. */
  readonly deadlineMs: number
  readonly breaker: BreakerOptions | undefined
  readonly start: BreakerStart
  readonly timers: Timers
  readonly monotonicMs: () => number
  readonly random: Random
  readonly observe: StoreObserver | undefined
}

const SLOTS = 16_384

/** An unanswered request for the slots holds up the next one for no longer than this. */
const REFRESH_TIMEOUT_MS = 1000

/** A primary and the slots it serves. */
interface Shard {
  readonly id: string
  readonly breaker: Breaker
  /** What it failed with last. */
  complaint: string
}

/**
 * A connection to a cluster with a breaker for each primary: calls to a shard that does not answer fail at once, and calls to
 * the others are not affected. Calls are never ended here: a late answer still reaches the caller.
 *
 * Which primary serves a slot is learnt from CLUSTER SLOTS, at the start and whenever a breaker opens. Until it is known, the
 * cluster is one shard. After a fail-over the slots belong to a new shard, whose breaker is closed.
 */
export class ShardedConnection implements RedisConnection {
  readonly client: string
  readonly isCluster = true
  readonly writesLater: boolean
  readonly #inner: RedisConnection
  readonly #parts: ShardedConnectionParts
  readonly #line: DeadlineLine
  #shards: readonly Shard[]
  /** The place in `#shards`, by slot. */
  #placeOf = new Uint16Array(SLOTS)
  #isKnown = false
  #refreshedAtMs = Number.NEGATIVE_INFINITY
  #state: BreakerState = 'closed'

  constructor(inner: RedisConnection, parts: ShardedConnectionParts) {
    this.client = inner.client
    this.writesLater = inner.writesLater === true
    this.#inner = inner
    this.#parts = parts
    this.#line = new DeadlineLine(parts)
    this.#shards = [this.#newShard('all')]
  }

  /** The worst state of any shard: `open` when at least one is not asked. */
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
    if (!this.#isKnown) this.#refresh()
    if (key === '') return await this.#inner.send(command, key)
    const { monotonicMs } = this.#parts
    const shard = this.#shards[this.#placeOf[hashSlotOf(key)]!]!
    const { breaker } = shard
    const nowMs = monotonicMs()
    const ticket = breaker.admit(nowMs)
    if (ticket === NOT_ADMITTED) throw notAsked(shard)
    const call = new ShardCall(shard, ticket)
    this.#line.add(call, nowMs)
    try {
      const reply = await this.#inner.send(command, key)
      if (this.#ends(call)) breaker.succeeded(ticket, nowMs)
      return reply
    } catch (error) {
      if (this.#ends(call)) this.#fail(call, error)
      throw error
    }
  }

  close(): Promise<void> {
    this.#line.close()
    return this.#inner.close()
  }

  /** Takes a call out of the line. False when its deadline has passed. */
  #ends(call: ShardCall): boolean {
    if (call.isOver) return false
    this.#line.remove(call)
    return true
  }

  #fail({ shard, ticket }: ShardCall, error: unknown): void {
    const nowMs = this.#parts.monotonicMs()
    const code = serverCodeOf(error)
    if (code === 'NOSCRIPT') shard.breaker.succeeded(ticket, nowMs)
    // Nothing was sent, which costs no time, or a slot is moving: this says nothing about the next call.
    else if (isSluiceError(error) || code === 'TRYAGAIN') shard.breaker.withdrawn(ticket)
    else {
      shard.complaint = error instanceof Error ? error.message : String(error)
      shard.breaker.failed(ticket, nowMs)
    }
  }

  #newShard(id: string): Shard {
    const { breaker, start, random } = this.#parts
    const onChange = (state: BreakerState): void => {
      // Perhaps another primary serves its slots now.
      if (state === 'open') this.#refresh()
      this.#noteState()
    }
    return { id, breaker: new Breaker({ ...breaker, random, start, onChange }), complaint: 'no answer in time' }
  }

  #noteState(): void {
    const states = new Set(this.#shards.map((shard) => shard.breaker.state))
    const worst = (['open', 'half-open'] as const).find((state) => states.has(state)) ?? 'closed'
    if (worst === this.#state) return
    this.#state = worst
    tell(this.#parts.observe, { type: 'breaker', state: worst })
  }

  /** Asks any node which primary serves which slots, unless that was asked a moment ago. */
  #refresh(): void {
    const nowMs = this.#parts.monotonicMs()
    if (nowMs - this.#refreshedAtMs < REFRESH_TIMEOUT_MS || !this.#inner.isReady()) return
    this.#refreshedAtMs = nowMs
    slotRanges((command, key) => this.#inner.send(command, key)).then(
      (ranges) => this.#learn(ranges),
      // It is asked again when a breaker opens the next time.
      () => undefined,
    )
  }

  #learn(ranges: Awaited<ReturnType<typeof slotRanges>>): void {
    const known = new Map(this.#shards.map((shard) => [shard.id, shard]))
    const ids = [...new Set(ranges.map(({ primary }) => primary))]
    if (ids.length === 0) return
    this.#shards = ids.map((id) => known.get(id) ?? this.#newShard(id))
    const placeOf = new Uint16Array(SLOTS)
    for (const { first, last, primary } of ranges) placeOf.fill(ids.indexOf(primary), first, last + 1)
    this.#placeOf = placeOf
    this.#isKnown = true
    this.#noteState()
  }
}

/** A call whose answer is awaited. */
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

function notAsked({ id, complaint }: Shard): StoreError {
  return storeUnavailable({
    because: 'breaker',
    partial: true,
    problem: `the primary ${id} of the Redis cluster is not asked, because it failed just before: ${complaint}`,
    action: 'It is tried again by itself; see that this primary runs, or that a replica takes its place.',
  })
}
