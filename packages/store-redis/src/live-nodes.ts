import type { Random } from '@sluice/core'
import type { ScriptRunner } from './script-runner.ts'
import { scriptOf } from './script-runner.ts'
import { BEAT_SCRIPT } from './scripts.ts'

const BEAT = scriptOf('beat-1.lua', BEAT_SCRIPT)

/** How often a node that is used says that it is alive. */
const BEAT_EVERY_MS = 1000

/** A node that has been silent for so long counts no more. */
const SILENCE_MICROS = 3_500_000

/**
 * Counts the nodes that use the store, by their heartbeats. Without a timer: a beat goes out beside the questions of a turn,
 * at most once a second, so a node that asks nothing does not count, and an idle process is not kept alive. While Redis is
 * away the last count stays.
 */
export class LiveNodes {
  readonly #runner: ScriptRunner
  readonly #key: string
  readonly #name: string
  readonly #monotonicMs: () => number
  #count = 1
  #beatAtMs = Number.NEGATIVE_INFINITY
  #isBeating = false

  constructor(
    runner: ScriptRunner,
    { prefix, random, monotonicMs }: { prefix: string; random: Random; monotonicMs: () => number },
  ) {
    this.#runner = runner
    this.#key = `${prefix}:1:{nodes}`
    this.#name = `${random.nextUint32().toString(36)}-${random.nextUint32().toString(36)}`
    this.#monotonicMs = monotonicMs
  }

  /** Nodes alive when it was last known, this one included: 1 or more. */
  get count(): number {
    return this.#count
  }

  /** Says that this node is alive, if it is time to. Never fails. */
  beat(): void {
    const nowMs = this.#monotonicMs()
    if (this.#isBeating || nowMs - this.#beatAtMs < BEAT_EVERY_MS) return
    this.#beatAtMs = nowMs
    void this.#send(SILENCE_MICROS)
  }

  /** Takes this node off the list, if it was ever on it. */
  async leave(): Promise<void> {
    if (this.#beatAtMs === Number.NEGATIVE_INFINITY) return
    await this.#send(0)
  }

  async #send(silenceMicros: number): Promise<void> {
    this.#isBeating = true
    try {
      const reply = await this.#runner.run(BEAT, [this.#key], [this.#name, String(silenceMicros)])
      if (typeof reply === 'number') this.#count = Math.max(1, reply)
    } catch {
      // Nobody asked for a beat: what is wrong with the store shows in the questions.
    } finally {
      this.#isBeating = false
    }
  }
}
