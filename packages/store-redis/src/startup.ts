import type { Timers } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import { failureOf } from '@sluice/core/internal'
import { primaryRoutingKeys } from './connection/cluster-slots.ts'
import type { RedisConnection } from './connection/connection.ts'
import { serverCodeOf } from './connection/connection.ts'
import type { ScriptRunner } from './wire/script-runner.ts'
import { isDenied } from './wire/script-runner.ts'
import { DECIDE, PROBE_COMMANDS } from './wire/scripts.ts'

/** How often to check whether there is a connection. */
const POLL_EVERY_MS = 2

/** How long to wait after a failed attempt. */
const RETRY_AFTER_MS = 50

/** How long a primary may take to reply in one attempt. */
const NODE_TIMEOUT_MS = 500

/** Maximum attempts when some primaries of a cluster have replied and others have not. */
const PARTIAL_ATTEMPTS = 3

/** A call of the decide script with one key and no limits. See lua/decide.lua. */
const EMPTY_CALL = Buffer.alloc(20)
EMPTY_CALL.writeUInt16LE(1, 16)

/** Options of a {@link Startup}. */
export interface StartupOptions {
  readonly connection: RedisConnection
  readonly runner: ScriptRunner
  readonly prefix: string
  /** Maximum time that the first calls wait. */
  readonly connectTimeoutMs: number
  readonly monotonicMs: () => number
  readonly timers: Timers
  /** Timers that do not keep the process alive. */
  readonly backgroundTimers: Timers
  /** Called once, when Redis has replied. `denial`: the user lacks a permission that the store needs. */
  readonly onReply: (denial: Error | undefined) => void
}

/**
 * Prepares the store before the first check: waits for the first connection, probes every command that the store needs,
 * and loads the decide script, on every primary. An error reply counts as a reply: waiting would not help.
 */
export class Startup {
  readonly #options: StartupOptions
  /** When the first calls stop waiting. */
  #endMs = Number.POSITIVE_INFINITY
  #attempt: Promise<void> | undefined
  #nextAttemptMs = Number.NEGATIVE_INFINITY
  #partialAttempts = 0
  #hasReplied = false
  #denial: Error | undefined
  #isStopped = false

  constructor(options: StartupOptions) {
    this.#options = options
  }

  /** Starts in the background. Resolves when Redis has replied, or after `connectTimeoutMs`. */
  async begin(): Promise<void> {
    const { connectTimeoutMs, monotonicMs, backgroundTimers } = this.#options
    this.#endMs = monotonicMs() + connectTimeoutMs
    await this.#until(() => this.#hasReplied || monotonicMs() >= this.#endMs, backgroundTimers)
  }

  /**
   * Resolves when Redis has replied, when `connectTimeoutMs` have passed since the start, or when waiting cannot help:
   * the caller made a mistake, or the server rejected the connection.
   */
  async untilStarted(): Promise<void> {
    const { connection, monotonicMs, timers } = this.#options
    const isOver = (): boolean => this.#hasReplied || monotonicMs() >= this.#endMs || isFinal(connection.obstacle?.())
    await this.#until(isOver, timers)
  }

  /**
   * Resolves with whether Redis has replied on a connection within `withinMs`.
   *
   * @throws StoreError when the user lacks a permission
   */
  async ready(withinMs: number): Promise<boolean> {
    const { connection, monotonicMs, timers } = this.#options
    const endMs = monotonicMs() + withinMs
    // The permission may have been granted since.
    if (this.#denial !== undefined) this.#hasReplied = false
    const isReady = (): boolean => this.#hasReplied && connection.isReady()
    await this.#until(() => isReady() || monotonicMs() >= endMs, timers)
    if (this.#denial !== undefined) throw this.#denial
    return isReady()
  }

  /** Probes the server if there is a connection and it has not replied yet. One attempt at a time. */
  attempt(): void {
    const { connection, monotonicMs } = this.#options
    if (this.#hasReplied || this.#attempt !== undefined) return
    if (monotonicMs() < this.#nextAttemptMs || !connection.isReady()) return
    this.#attempt = this.#probeAll().finally(() => {
      this.#attempt = undefined
      this.#nextAttemptMs = monotonicMs() + RETRY_AFTER_MS
    })
  }

  stop(): void {
    this.#isStopped = true
  }

  async #until(isDone: () => boolean, timers: Timers): Promise<void> {
    while (!(this.#isStopped || isDone())) {
      this.attempt()
      await new Promise<void>((resolve) => void timers.schedule(POLL_EVERY_MS, resolve))
    }
  }

  /** Never rejects. */
  async #probeAll(): Promise<void> {
    const { runner, onReply } = this.#options
    const outcomes: unknown[] = []
    try {
      const { connection, prefix } = this.#options
      const keys = await primaryRoutingKeys((command, key) => runner.command(command, key), {
        isCluster: connection.isCluster,
        prefix,
      })
      outcomes.push(...(await Promise.all(keys.map((key) => this.#probe(key)))))
    } catch (error) {
      outcomes.push(error)
    }
    this.#denial = outcomes.find(isDenied) as Error | undefined
    const replies = outcomes.filter(isReply).length
    if (replies === 0) return
    // A primary of a cluster may take longer than the others, but a dead one must not delay them.
    if (replies < outcomes.length && ++this.#partialAttempts < PARTIAL_ATTEMPTS) return
    this.#hasReplied = true
    onReply(this.#denial)
  }

  /** Resolves with undefined, or with the error. */
  async #probe(routingKey: string): Promise<unknown> {
    const { runner, timers } = this.#options
    const silence = Promise.withResolvers<unknown>()
    const cancel = timers.schedule(NODE_TIMEOUT_MS, () => silence.resolve(NO_REPLY))
    const calls = Promise.all([
      // With EVAL, because the user needs both EVAL and EVALSHA.
      runner.command(['EVAL', PROBE_COMMANDS.body, '1', routingKey], routingKey),
      runner.run(DECIDE, [routingKey], [EMPTY_CALL]),
    ])
    const outcome = calls.then(
      () => undefined,
      (error: unknown) => error,
    )
    return await Promise.race([outcome, silence.promise]).finally(cancel)
  }
}

const NO_REPLY = Symbol('no reply')

/** Whether the server has replied, even with an error. */
function isReply(outcome: unknown): boolean {
  return outcome === undefined || (outcome !== NO_REPLY && failureOf(outcome)?.cause === 'refused')
}

/** Whether waiting cannot remove an obstacle. */
function isFinal(obstacle: Error | undefined): boolean {
  return isSluiceError(obstacle) || serverCodeOf(obstacle) !== undefined
}
