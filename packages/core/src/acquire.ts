import type { AbortSignalLike } from './abort.ts'
import { orAborted, pause } from './abort.ts'
import type { Clock } from './clock.ts'
import { MICROS_PER_MS } from './clock.ts'
import type { Decision, Denied } from './decision.ts'
import type { Timers } from './timers.ts'
import type { WaitingLine } from './waiting-line.ts'

/** What waiting needs. */
export interface Wait {
  readonly attempt: () => Promise<Decision>
  /** What an attempt would answer, without charging. */
  readonly look: () => Promise<Decision>
  readonly giveBack: (decision: Decision) => Promise<void>
  readonly line: WaitingLine
  readonly key: string
  /** No waiting beyond this instant; `Infinity` for as long as it takes. */
  readonly deadlineMicros: number
  readonly clock: Clock
  readonly timers: Timers
  readonly signal: AbortSignalLike | undefined
  /** Most callers waiting at once; one more is refused as if it had not waited. */
  readonly maxWaiting: number
}

/**
 * Tries, waits as long as the refusal says, and tries again, one caller of a key at a time. A flat loop: however long it
 * takes, nothing piles up. An abort takes the caller out of the line; what it had already been charged is given back.
 */
export async function waitForTurn(wait: Wait): Promise<Decision> {
  if (wait.signal?.aborted === true) throw wait.signal.reason
  const decision = wait.line.size >= wait.maxWaiting ? await wait.attempt() : await tryInTurn(wait)
  return decision.allowed && decision.delayMs > 0 ? await waitInQueue(wait, decision) : decision
}

async function tryInTurn(wait: Wait): Promise<Decision> {
  const ticket = wait.line.join(wait.key)
  try {
    if (await isTurnInTime(wait, ticket.turn)) return await tryUntilAllowed(wait)
    const standing = await wait.look()
    return standing.allowed ? refusalOf(standing, 0) : standing
  } finally {
    ticket.leave()
  }
}

/** Waits for the turn; false when the deadline comes first. */
async function isTurnInTime(wait: Wait, turn: Promise<void>): Promise<boolean> {
  const inTime = turn.then(() => true)
  if (wait.deadlineMicros === Number.POSITIVE_INFINITY) return await orAborted(inTime, [wait.signal])
  const late = Promise.withResolvers<boolean>()
  const cancel = wait.timers.schedule(leftMs(wait), () => late.resolve(false))
  return await orAborted(Promise.race([inTime, late.promise]), [wait.signal]).finally(cancel)
}

async function tryUntilAllowed(wait: Wait): Promise<Decision> {
  const { signal, line, timers } = wait
  for (;;) {
    const decision = await wait.attempt()
    if (signal?.aborted === true) {
      if (decision.allowed) await wait.giveBack(decision)
      throw signal.reason
    }
    if (decision.allowed || decision.reason === 'never' || decision.retryAfterMs > leftMs(wait)) return decision
    await pause(timers, decision.retryAfterMs, [signal, line.closing])
  }
}

/** Let in, but not yet its turn to leave: the queue of a shaper. The place in the line is free for the next meanwhile. */
async function waitInQueue(wait: Wait, decision: Decision): Promise<Decision> {
  const left = leftMs(wait)
  if (decision.delayMs > left) {
    await wait.giveBack(decision)
    return refusalOf(decision, Math.ceil(decision.delayMs - left))
  }
  try {
    await pause(wait.timers, decision.delayMs, [wait.signal, wait.line.closing])
  } catch (reason) {
    await wait.giveBack(decision)
    throw reason
  }
  return decision
}

/** A refusal of a caller that would have been allowed, but not in the time it has. */
function refusalOf(decision: Decision, retryAfterMs: number): Denied {
  const remaining = decision.remaining === null ? null : decision.remaining + decision.cost
  return { ...decision, allowed: false, reason: 'limit', cost: 0, remaining, delayMs: 0, retryAfterMs }
}

function leftMs(wait: Wait): number {
  return (wait.deadlineMicros - wait.clock.nowMicros()) / MICROS_PER_MS
}
