import type { AbortSignalLike } from './abort.ts'
import { orAborted, pause } from './abort.ts'
import type { Clock } from './clock.ts'
import { MICROS_PER_MS } from './clock.ts'
import type { Decision } from './decision.ts'
import type { Timers } from './timers.ts'
import type { WaitingLine } from './waiting-line.ts'

/** What waiting needs. */
export interface Wait {
  readonly attempt: () => Promise<Decision>
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
  const { line, key, signal, maxWaiting, attempt } = wait
  if (signal?.aborted === true) throw signal.reason
  if (line.size >= maxWaiting) return await attempt()
  const ticket = line.join(key)
  let decision: Decision
  try {
    await orAborted(ticket.turn, signal)
    decision = await tryUntilAllowed(wait)
  } finally {
    ticket.leave()
  }
  return decision.allowed && decision.delayMs > 0 ? await waitInQueue(wait, decision) : decision
}

async function tryUntilAllowed(wait: Wait): Promise<Decision> {
  for (;;) {
    const decision = await wait.attempt()
    if (decision.allowed || decision.retryAfterMs > leftMs(wait)) return decision
    await pause(wait.timers, decision.retryAfterMs, wait.signal)
  }
}

/** Let in, but not yet its turn to leave: the queue of a shaper. The place in the line is free for the next meanwhile. */
async function waitInQueue(wait: Wait, decision: Decision): Promise<Decision> {
  const left = leftMs(wait)
  if (decision.delayMs > left) {
    await wait.giveBack(decision)
    return {
      ...decision,
      allowed: false,
      reason: 'limit',
      cost: 0,
      delayMs: 0,
      retryAfterMs: Math.ceil(decision.delayMs - left),
    }
  }
  try {
    await pause(wait.timers, decision.delayMs, wait.signal)
  } catch (reason) {
    await wait.giveBack(decision)
    throw reason
  }
  return decision
}

function leftMs(wait: Wait): number {
  return (wait.deadlineMicros - wait.clock.nowMicros()) / MICROS_PER_MS
}
