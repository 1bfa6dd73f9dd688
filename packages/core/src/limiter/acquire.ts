import type { AbortSignalLike } from '../system/abort.ts'
import { orAborted, pause } from '../system/abort.ts'
import type { Clock, Timers } from '../system/clock-and-timers.ts'
import { MICROS_PER_MS } from '../system/clock-and-timers.ts'
import type { Decision, Denied } from './decision.ts'
import type { KeyQueue } from './key-queue.ts'

/** Pauses between two attempts to get a slot: they double up to the maximum. */
const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 100

/** With more than 100 waiting keys the pauses grow, so that all keys together make at most 1000 attempts per second. */
const PAUSE_PER_KEY_MS = 1

/**
 * What a denied caller waits for. `slot`: a holder may release one at any time, in this process or in another. `time`:
 * the time at which units return is known; this process may return some earlier.
 */
export interface Obstacle {
  readonly waitsFor: 'slot' | 'time'
  readonly retryAfterMs: number
}

/** Dependencies of waiting. */
export interface Wait<T> {
  /** Attempts the call. */
  readonly attempt: () => T | Promise<T>
  /** What the caller has to wait for after a result; undefined if the result is final. */
  readonly obstacleTo: (answer: T) => Obstacle | undefined
  /** The result for a caller whose time is over, from the last attempt if there was one. */
  readonly giveUp: (denied: T | undefined) => T | Promise<T>
  readonly giveBack: (answer: T) => Promise<void>
  /** Calls `listener` when this process returns units or slots. Returns a function that unsubscribes. */
  readonly onRelease: (listener: () => void) => () => void
  readonly queue: KeyQueue
  readonly key: string
  /** End of the wait; `Infinity` for no limit. */
  readonly deadlineMicros: number
  /** Maximum pause between attempts while the end of the wait is known. */
  readonly longestPauseMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly signal: AbortSignalLike | undefined
  /** Maximum number of callers waiting at once; further ones are denied. */
  readonly maxWaiting: number
}

/**
 * Attempts the call again whenever it may succeed, one caller per key at a time, in order of arrival. A flat loop:
 * memory does not grow with the duration. An abort removes the caller from the queue and returns what it had already
 * been charged.
 *
 * Bounds: units that this process returns are requested at once by the first caller. Units that another process returns
 * are found within {@link LONGEST_PAUSE_MS}, or {@link PAUSE_PER_KEY_MS} per waiting key if that is longer.
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

/** Waits for the turn; false if the deadline comes first. */
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
      // Created before the attempt: units returned meanwhile may be too late for it, and end the pause after it.
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

/** Waits for the delay that a queue has assigned. The place in the queue is free for the next caller meanwhile. */
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

/** A denial of a caller that would have been allowed, but not within its time. */
export function denialInsteadOf(decision: Decision, retryAfterMs: number): Denied {
  const remaining = decision.remaining === null ? null : decision.remaining + decision.cost
  return { ...decision, allowed: false, reason: 'limit', cost: 0, remaining, delayMs: 0, retryAfterMs }
}

function leftMs(wait: Pick<Wait<never>, 'deadlineMicros' | 'clock'>): number {
  return (wait.deadlineMicros - wait.clock.nowMicros()) / MICROS_PER_MS
}
