import type { AbortSignalLike } from '../system/abort.ts'
import { orAborted, pause } from '../system/abort.ts'
import type { Clock, Timers } from '../system/clock-and-timers.ts'
import { MICROS_PER_MS } from '../system/clock-and-timers.ts'
import type { Decision, Denied } from './decision.ts'
import type { KeyQueue } from './key-queue.ts'

/** Pauses between two attempts to get a slot: they double up to the longest. */
const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 100

/**
 * With more than 100 keys in the queue the pauses grow, so that all of them together make 1000 attempts a second at
 * most.
 */
const PAUSE_PER_KEY_MS = 1

/**
 * What a denied caller waits for. `slot`: a holder may release one at any time, in this process or in another.
 * `time`: it is known when units come back; this process may give some back earlier.
 */
export interface Obstacle {
  readonly waitsFor: 'slot' | 'time'
  readonly retryAfterMs: number
}

/** What waiting needs. */
export interface Wait<T> {
  /** Asks for what the caller waits for. */
  readonly attempt: () => T | Promise<T>
  /** What an answer says the caller has to wait for; undefined when the answer is final. */
  readonly obstacleTo: (answer: T) => Obstacle | undefined
  /** The answer to a caller whose time is over, from the last attempt if there was one. */
  readonly giveUp: (denied: T | undefined) => T | Promise<T>
  readonly giveBack: (answer: T) => Promise<void>
  /** Calls `listener` when this process gives something back. Returns a function that ends it. */
  readonly onRelease: (listener: () => void) => () => void
  readonly queue: KeyQueue
  readonly key: string
  /** No waiting beyond this instant; `Infinity` for as long as it takes. */
  readonly deadlineMicros: number
  /** Longest pause between attempts while the end of the wait is known. */
  readonly longestPauseMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly signal: AbortSignalLike | undefined
  /** Maximum number of callers waiting at once; one more is denied as if it had not waited. */
  readonly maxWaiting: number
}

/**
 * Asks, and asks again when there may be something to have, one caller of a key at a time, in order of arrival. A flat
 * loop: however long it takes, nothing piles up. An abort takes the caller out of the queue; what it had already been
 * charged is given back.
 *
 * Bounds: what this process gives back, the first in line asks for at once. What another process gives back, it asks
 * for within {@link LONGEST_PAUSE_MS}, or {@link PAUSE_PER_KEY_MS} for each key in the queue if that is longer.
 */
export async function waitForTurn<T>(wait: Wait<T>): Promise<T> {
  const { signal, queue } = wait
  if (signal?.aborted === true) throw signal.reason
  if (queue.size >= wait.maxWaiting) return await wait.attempt()
  const ticket = queue.join(wait.key)
  try {
    return (await isTurnInTime(wait, ticket.turn)) ? await tryUntilFinal(wait) : await wait.giveUp(undefined)
  } finally {
    ticket.leave()
  }
}

/** Waits for the turn; false when the deadline comes first. */
async function isTurnInTime<T>(wait: Wait<T>, turn: Promise<void>): Promise<boolean> {
  const inTime = turn.then(() => true)
  if (wait.deadlineMicros === Number.POSITIVE_INFINITY) return await orAborted(inTime, [wait.signal])
  const late = Promise.withResolvers<boolean>()
  const cancel = wait.timers.schedule(leftMs(wait), () => late.resolve(false))
  return await orAborted(Promise.race([inTime, late.promise]), [wait.signal]).finally(cancel)
}

async function tryUntilFinal<T>(wait: Wait<T>): Promise<T> {
  const { signal, queue, timers } = wait
  let next = Promise.withResolvers<void>()
  const stop = wait.onRelease(() => next.resolve())
  try {
    for (let pauses = 0; ; pauses++) {
      // Made before the attempt: what is given back meanwhile may be too late for it, and ends the pause after it.
      next = Promise.withResolvers<void>()
      const answer = await wait.attempt()
      if (signal?.aborted === true) {
        await wait.giveBack(answer)
        throw signal.reason
      }
      const obstacle = wait.obstacleTo(answer)
      if (obstacle === undefined) return answer
      const left = leftMs(wait)
      const { waitsFor, retryAfterMs } = obstacle
      if (waitsFor === 'slot' ? left <= 0 : retryAfterMs > left) return await wait.giveUp(answer)
      const longestMs = waitsFor === 'slot' ? slotPauseMs(pauses, queue.keys) : wait.longestPauseMs
      const pauseMs = Math.min(retryAfterMs, longestMs, Math.max(left, 0))
      const cancel = timers.schedule(pauseMs, next.resolve)
      await orAborted(next.promise, [signal, queue.closing]).finally(cancel)
    }
  } finally {
    stop()
  }
}

function slotPauseMs(pauses: number, keys: number): number {
  return Math.max(Math.min(FIRST_PAUSE_MS * 2 ** pauses, LONGEST_PAUSE_MS), PAUSE_PER_KEY_MS * keys)
}

/**
 * Waits for the turn to leave that a queue has given: a shaper. The place in the queue is free for the next meanwhile.
 */
export async function waitInQueue(
  wait: Omit<Wait<Decision>, 'attempt' | 'obstacleTo' | 'giveUp'>,
  decision: Decision,
): Promise<Decision> {
  const left = leftMs(wait)
  if (decision.delayMs > left) {
    await wait.giveBack(decision)
    return denialInsteadOf(decision, Math.ceil(decision.delayMs - left))
  }
  try {
    await pause(wait.timers, decision.delayMs, [wait.signal, wait.queue.closing])
  } catch (reason) {
    await wait.giveBack(decision)
    throw reason
  }
  return decision
}

/** A denial of a caller that would have been allowed, but not in the time it has. */
export function denialInsteadOf(decision: Decision, retryAfterMs: number): Denied {
  const remaining = decision.remaining === null ? null : decision.remaining + decision.cost
  return { ...decision, allowed: false, reason: 'limit', cost: 0, remaining, delayMs: 0, retryAfterMs }
}

function leftMs(wait: Pick<Wait<never>, 'deadlineMicros' | 'clock'>): number {
  return (wait.deadlineMicros - wait.clock.nowMicros()) / MICROS_PER_MS
}
