import type { Random, Timers } from '@sluice/core'
import { checkWhole } from '@sluice/core/internal'
import type { ScriptRunner } from './wire/script-runner.ts'
import { HEARTBEAT } from './wire/scripts.ts'

/** Interval of heartbeats. */
const HEARTBEAT_EVERY_MS = 1000

/** After a failed heartbeat, the next check may send one after this time. */
const RETRY_AFTER_MS = 100

/** A node without a heartbeat for this time is no longer counted. */
const SILENCE_MS = 3500

const MAX_NODES = 1_000_000

/** Options of {@link LiveNodes}. */
export interface LiveNodesOptions {
  readonly prefix: string
  readonly random: Random
  readonly monotonicMs: () => number
  readonly timers: Timers
  /** The node count until the first heartbeat succeeds. */
  readonly initialNodes: number
  readonly onNodesChange: ((nodes: number) => void) | undefined
}

/**
 * Counts the nodes that use the store, by their heartbeats: one per second, whether the store is used or not. While
 * Redis is unreachable, the last count stays. A higher count applies at once. A lower one applies when every heartbeat
 * of 3.5 seconds has reported fewer nodes: a Redis that has just come back, or has lost its data, knows only the nodes
 * that were quickest.
 */
export class LiveNodes {
  readonly #runner: Pick<ScriptRunner, 'run'>
  readonly #options: LiveNodesOptions
  readonly #key: string
  readonly #name: string
  #count: number
  /** Since when heartbeats report fewer nodes, and the maximum they have reported since. */
  #lower: { readonly sinceMs: number; readonly count: number } | undefined
  /** When the next check may send a heartbeat. */
  #dueAtMs = Number.NEGATIVE_INFINITY
  #isSending = false
  #isStopped = false
  #cancelNext: (() => void) | undefined

  constructor(runner: Pick<ScriptRunner, 'run'>, options: LiveNodesOptions) {
    const { prefix, random, initialNodes } = options
    this.#runner = runner
    this.#options = options
    this.#key = `${prefix}:1:{nodes}`
    this.#name = `${random.nextUint32().toString(36)}-${random.nextUint32().toString(36)}`
    this.#count = checkWhole('initialNodes', initialNodes, {
      of: 'the Redis store',
      most: MAX_NODES,
      action: 'Pass the node count that onNodesChange reported last, or leave it out.',
    })
  }

  /** The last known number of live nodes, including this one: 1 or more. */
  get count(): number {
    return this.#count
  }

  /** Sends a heartbeat now, and one per second from then on, until {@link stop}. */
  start(): void {
    if (this.#isStopped) return
    void this.#heartbeat()
    this.#cancelNext = this.#options.timers.schedule(HEARTBEAT_EVERY_MS, () => this.start())
  }

  /** Sends no more heartbeats. */
  stop(): void {
    this.#isStopped = true
    this.#cancelNext?.()
  }

  /** Sends a heartbeat with the next check if none succeeded for a second. */
  heartbeatWithCheck(): void {
    if (this.#options.monotonicMs() >= this.#dueAtMs) void this.#heartbeat()
  }

  /** Removes this node. Never rejects. */
  async leave(): Promise<void> {
    await this.#send(0).catch(() => undefined)
  }

  /** Never rejects. */
  async #heartbeat(): Promise<void> {
    if (this.#isStopped || this.#isSending) return
    this.#isSending = true
    const { monotonicMs } = this.#options
    try {
      const reply = await this.#send(SILENCE_MS)
      this.#dueAtMs = monotonicMs() + HEARTBEAT_EVERY_MS
      if (typeof reply === 'number') this.#update(Math.max(1, reply))
    } catch {
      // Checks report what is wrong with Redis.
      this.#dueAtMs = monotonicMs() + RETRY_AFTER_MS
      this.#lower = undefined
    } finally {
      this.#isSending = false
    }
  }

  /** Removes nodes without a heartbeat for `silenceMs`; 0 removes this one. */
  #send(silenceMs: number): Promise<unknown> {
    return this.#runner.run(HEARTBEAT, [this.#key], [this.#name, String(silenceMs * 1000)])
  }

  #update(count: number): void {
    if (count >= this.#count) {
      this.#lower = undefined
      this.#change(count)
      return
    }
    const nowMs = this.#options.monotonicMs()
    this.#lower = { sinceMs: this.#lower?.sinceMs ?? nowMs, count: Math.max(count, this.#lower?.count ?? 1) }
    if (nowMs - this.#lower.sinceMs < SILENCE_MS) return
    this.#change(this.#lower.count)
    this.#lower = undefined
  }

  #change(count: number): void {
    if (count === this.#count) return
    this.#count = count
    try {
      this.#options.onNodesChange?.(count)
    } catch {
      // A callback that throws must not stop the heartbeats.
    }
  }
}
