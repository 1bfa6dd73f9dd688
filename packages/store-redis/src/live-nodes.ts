import type { Random, Timers } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import type { ScriptRunner } from './wire/script-runner.ts'
import { scriptOf } from './wire/script-runner.ts'
import { BEAT_SCRIPT } from './wire/scripts.ts'

const BEAT = scriptOf('beat-1.lua', BEAT_SCRIPT)

/** How often a node says that it is alive. */
const BEAT_EVERY_MS = 1000

/** When a heartbeat has failed, one may go out with the next check after so long. */
const RETRY_AFTER_MS = 100

/** A node that has been silent for so long counts no more. */
const SILENCE_MS = 3500

const MOST_NODES = 1_000_000

/** What {@link LiveNodes} work with. */
export interface LiveNodesParts {
  readonly prefix: string
  readonly random: Random
  readonly monotonicMs: () => number
  readonly timers: Timers
  /** The node count until the first heartbeat is answered. */
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
  readonly #parts: LiveNodesParts
  readonly #key: string
  readonly #name: string
  #count: number
  /** Since when heartbeats report fewer nodes, and the most that they have reported since. */
  #lower: { readonly sinceMs: number; readonly count: number } | undefined
  /** When the next heartbeat may go out beside a check. */
  #dueAtMs = Number.NEGATIVE_INFINITY
  #isBeating = false
  #isOver = false
  #cancelBeat: (() => void) | undefined

  constructor(runner: Pick<ScriptRunner, 'run'>, parts: LiveNodesParts) {
    const { prefix, random, initialNodes } = parts
    this.#runner = runner
    this.#parts = parts
    this.#key = `${prefix}:1:{nodes}`
    this.#name = `${random.nextUint32().toString(36)}-${random.nextUint32().toString(36)}`
    this.#count = checkCount(initialNodes)
  }

  /** Nodes alive when it was last known, this one included: 1 or more. */
  get count(): number {
    return this.#count
  }

  /** Sends a heartbeat now, and one per second from then on, until {@link stop}. */
  start(): void {
    if (this.#isOver) return
    void this.#beat()
    this.#cancelBeat = this.#parts.timers.schedule(BEAT_EVERY_MS, () => this.start())
  }

  /** Sends no more heartbeats. */
  stop(): void {
    this.#isOver = true
    this.#cancelBeat?.()
  }

  /** A check is about to be sent: a heartbeat goes with it if none was answered for a second. */
  beatWithCheck(): void {
    if (this.#parts.monotonicMs() >= this.#dueAtMs) void this.#beat()
  }

  /** Takes this node off the list. Never fails. */
  async leave(): Promise<void> {
    await this.#send(0).catch(() => undefined)
  }

  /** Never fails. */
  async #beat(): Promise<void> {
    if (this.#isOver || this.#isBeating) return
    this.#isBeating = true
    const { monotonicMs } = this.#parts
    try {
      const reply = await this.#send(SILENCE_MS)
      this.#dueAtMs = monotonicMs() + BEAT_EVERY_MS
      if (typeof reply === 'number') this.#learn(Math.max(1, reply))
    } catch {
      // Nobody asked for a heartbeat: checks report what is wrong with Redis.
      this.#dueAtMs = monotonicMs() + RETRY_AFTER_MS
      this.#lower = undefined
    } finally {
      this.#isBeating = false
    }
  }

  /** `silenceMs`: nodes that have been silent for longer are taken off; 0 takes this one off. */
  #send(silenceMs: number): Promise<unknown> {
    return this.#runner.run(BEAT, [this.#key], [this.#name, String(silenceMs * 1000)])
  }

  #learn(count: number): void {
    if (count >= this.#count) {
      this.#lower = undefined
      this.#change(count)
      return
    }
    const nowMs = this.#parts.monotonicMs()
    this.#lower = { sinceMs: this.#lower?.sinceMs ?? nowMs, count: Math.max(count, this.#lower?.count ?? 1) }
    if (nowMs - this.#lower.sinceMs < SILENCE_MS) return
    this.#change(this.#lower.count)
    this.#lower = undefined
  }

  #change(count: number): void {
    if (count === this.#count) return
    this.#count = count
    try {
      this.#parts.onNodesChange?.(count)
    } catch {
      // A callback that throws must not stop the heartbeats.
    }
  }
}

function checkCount(nodes: number): number {
  if (Number.isInteger(nodes) && nodes >= 1 && nodes <= MOST_NODES) return nodes
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"initialNodes" of the Redis store cannot be used',
    received: nodes,
    expected: `a whole number from 1 to ${MOST_NODES}`,
    action: 'Pass the node count that onNodesChange reported last, or leave it out.',
  })
}
