import type { Timers } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import { failureOf } from '@sluice/core/internal'
import { nodeAnchors } from './connection/cluster-slots.ts'
import type { RedisConnection } from './connection/connection.ts'
import { DECIDE } from './strict-store.ts'
import type { ScriptRunner } from './wire/script-runner.ts'
import { isDenied, serverCodeOf } from './wire/script-runner.ts'
import { PROBE_SCRIPT } from './wire/scripts.ts'

/** How often to look whether there is a connection. */
const LOOK_EVERY_MS = 2

/** How long to wait after an attempt that was not answered. */
const RETRY_AFTER_MS = 50

/** How long a primary may take to answer in one attempt. */
const NODE_TIMEOUT_MS = 500

/** How often it is attempted when some primaries of a cluster have answered and others have not. */
const PARTIAL_ATTEMPTS = 3

/** A decision about nothing: one key is read, no limit and no question follows. See lua/decide-n.lua. */
const NOTHING_ASKED = Buffer.alloc(20)
NOTHING_ASKED.writeUInt16LE(1, 16)

/** What a {@link StartUp} works with. */
export interface StartUpParts {
  readonly connection: RedisConnection
  readonly runner: ScriptRunner
  readonly prefix: string
  /** How long the first calls wait at most. */
  readonly connectTimeoutMs: number
  readonly monotonicMs: () => number
  readonly timers: Timers
  /** Timers for what nobody waits for. */
  readonly backgroundTimers: Timers
  /** Called once, when Redis has answered. `denial`: the user lacks a permission that the store needs. */
  readonly onAnswered: (denial: Error | undefined) => void
}

/**
 * What happens before the first check: waits for the first connection, runs every command that the store needs, and loads
 * the script that decides, on every primary. A server that answers with an error has answered: waiting would not help.
 */
export class StartUp {
  readonly #parts: StartUpParts
  /** When the first calls stop waiting. */
  #endMs = Number.POSITIVE_INFINITY
  #attempt: Promise<void> | undefined
  #nextAttemptMs = Number.NEGATIVE_INFINITY
  #partialAttempts = 0
  #isAnswered = false
  #denial: Error | undefined
  #isOver = false

  constructor(parts: StartUpParts) {
    this.#parts = parts
  }

  /** Starts, in the background. Resolves when Redis has answered, or after `connectTimeoutMs`. */
  async begin(): Promise<void> {
    const { connectTimeoutMs, monotonicMs, backgroundTimers } = this.#parts
    this.#endMs = monotonicMs() + connectTimeoutMs
    await this.#until(() => this.#isAnswered || monotonicMs() >= this.#endMs, backgroundTimers)
  }

  /**
   * Resolves when Redis has answered, when `connectTimeoutMs` have passed since the start, or when waiting cannot help: the
   * caller has made a mistake, or a server has rejected the connection.
   */
  async untilStarted(): Promise<void> {
    const { connection, monotonicMs, timers } = this.#parts
    const isOver = (): boolean => this.#isAnswered || monotonicMs() >= this.#endMs || isFinal(connection.obstacle?.())
    await this.#until(isOver, timers)
  }

  /**
   * Resolves with whether there is a connection on which Redis has answered, within so many milliseconds.
   *
   * @throws StoreError when the user lacks a permission
   */
  async ready(withinMs: number): Promise<boolean> {
    const { connection, monotonicMs, timers } = this.#parts
    const endMs = monotonicMs() + withinMs
    // It may have been granted since.
    if (this.#denial !== undefined) this.#isAnswered = false
    const isReady = (): boolean => this.#isAnswered && connection.isReady()
    await this.#until(() => isReady() || monotonicMs() >= endMs, timers)
    if (this.#denial !== undefined) throw this.#denial
    return isReady()
  }

  /** Attempts it if there is a connection and Redis has not answered yet: one attempt at a time. */
  attempt(): void {
    const { connection, monotonicMs } = this.#parts
    if (this.#isAnswered || this.#attempt !== undefined) return
    if (monotonicMs() < this.#nextAttemptMs || !connection.isReady()) return
    this.#attempt = this.#warmUp().finally(() => {
      this.#attempt = undefined
      this.#nextAttemptMs = monotonicMs() + RETRY_AFTER_MS
    })
  }

  /** Ends all waiting. */
  stop(): void {
    this.#isOver = true
  }

  async #until(holds: () => boolean, timers: Timers): Promise<void> {
    while (!(this.#isOver || holds())) {
      this.attempt()
      await new Promise<void>((resolve) => void timers.schedule(LOOK_EVERY_MS, resolve))
    }
  }

  /** Never rejects. */
  async #warmUp(): Promise<void> {
    const { runner, onAnswered } = this.#parts
    const outcomes: unknown[] = []
    try {
      const anchors = await nodeAnchors(runner, this.#parts)
      outcomes.push(...(await Promise.all(anchors.map((anchor) => this.#warmUpNode(anchor)))))
    } catch (error) {
      outcomes.push(error)
    }
    this.#denial = outcomes.find(isDenied) as Error | undefined
    const answered = outcomes.filter(isAnswer).length
    if (answered === 0) return
    // A primary of a cluster may take a moment longer than the others, but a dead one must not hold them up.
    if (answered < outcomes.length && ++this.#partialAttempts < PARTIAL_ATTEMPTS) return
    this.#isAnswered = true
    onAnswered(this.#denial)
  }

  /** Resolves with undefined, or with what went wrong. */
  async #warmUpNode(anchor: string): Promise<unknown> {
    const { runner, timers } = this.#parts
    const silence = Promise.withResolvers<unknown>()
    const cancel = timers.schedule(NODE_TIMEOUT_MS, () => silence.resolve(NO_ANSWER))
    const calls = Promise.all([
      // By its text: the user needs EVAL and EVALSHA.
      runner.command(['EVAL', PROBE_SCRIPT, '1', anchor], anchor),
      runner.run(DECIDE, [anchor], [NOTHING_ASKED]),
    ])
    const outcome = calls.then(
      () => undefined,
      (error: unknown) => error,
    )
    return await Promise.race([outcome, silence.promise]).finally(cancel)
  }
}

const NO_ANSWER = Symbol('no answer')

/** Whether a server has answered, be it with an error. */
function isAnswer(outcome: unknown): boolean {
  return outcome === undefined || (outcome !== NO_ANSWER && failureOf(outcome)?.cause === 'refused')
}

/** Whether waiting cannot help against an obstacle. */
function isFinal(obstacle: Error | undefined): boolean {
  return isSluiceError(obstacle) || serverCodeOf(obstacle) !== undefined
}
