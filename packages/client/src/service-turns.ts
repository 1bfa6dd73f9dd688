import type { CheckAnswer, CheckRequest } from '@sluice/contract'
import type { NowMs, Sleep } from '@sluice/runtime/portable'
import { systemNowMs, systemSleep } from '@sluice/runtime/portable'
import type { Client } from './client.ts'
import { decisionOf } from './decision-of.ts'
import type { Turn, TurnLimiter, TurnOptions } from './turn-limiter.ts'

/** Whom to ask for turns, and what for. */
export interface ServiceTurnsOptions {
  readonly client: Pick<Client, 'check'>
  /** The check that stands for a turn of `key` that takes `cost` units. */
  readonly request: (key: string, cost: number) => CheckRequest
  /** Waits; on timers of the process when left out. */
  readonly sleep?: Sleep | undefined
  /** Reads the wall clock; that of the system when left out. */
  readonly nowMs?: NowMs | undefined
}

/**
 * Turns by the limits of a service, so that many machines wait for one limit together: checks, waits as long as a refusal says,
 * and checks again. Those who wait are served in about the order they came. What the client rejects with, this does; in its
 * failure mode `open` it is everybody's turn.
 */
export function serviceTurns(options: ServiceTurnsOptions): TurnLimiter {
  const { client, request, sleep = systemSleep, nowMs = systemNowMs } = options

  async function acquire(key: string, { cost, signal, maxWait }: TurnOptions): Promise<Turn> {
    const deadlineMs = nowMs() + (maxWait ?? Number.POSITIVE_INFINITY)
    for (;;) {
      const answer: CheckAnswer = await client.check(request(key, cost), { signal })
      const { allowed, retryAfterMs, delayMs = 0 } = decisionOf(answer)
      // A refusal without a wait would be asked about without end.
      const waitMs = allowed ? delayMs : Math.max(1, retryAfterMs)
      if (waitMs > 0) {
        if (waitMs > deadlineMs - nowMs() || waitMs === Number.POSITIVE_INFINITY)
          return { allowed: false, retryAfterMs: waitMs }
        await sleep(waitMs, signal)
      }
      if (allowed) return { allowed, retryAfterMs: 0 }
    }
  }

  return { acquire }
}
