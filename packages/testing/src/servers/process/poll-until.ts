import type { Timers } from '@sluice/core'
import { systemTimers } from '@sluice/core'
import { ServerError } from './server-error.ts'

const POLL_MS = 10
const LONGEST_WAIT_MS = 15_000

/** What {@link pollUntil} waits for, and how. */
export interface PollOptions {
  /** The rest of a sentence that begins with "waited for". */
  readonly what: string
  /** Milliseconds until it gives up; 15 000 when not given. */
  readonly withinMs?: number
  /** What stood in the way at last, for the message of the error. */
  readonly explain?: () => string
  readonly timers?: Timers
}

/**
 * Asks again and again, 10 ms after each answer, until the answer is something else than undefined, and resolves with
 * it. An answer that rejects ends the wait.
 *
 * @throws ServerError `SLUICE_TESTING_TOO_SLOW` when the time is over; an answer in flight is awaited first
 */
export async function pollUntil<T>(ask: () => Promise<T | undefined>, options: PollOptions): Promise<T> {
  const { what, withinMs = LONGEST_WAIT_MS, explain = () => '', timers = systemTimers } = options
  let isOver = false
  const cancel = timers.schedule(withinMs, () => {
    isOver = true
  })
  try {
    for (;;) {
      const answer = await ask()
      if (answer !== undefined) return answer
      if (isOver) {
        const message = `waited ${withinMs} ms for ${what}, in vain. ${explain()}`
        throw new ServerError('SLUICE_TESTING_TOO_SLOW', message.trimEnd())
      }
      await new Promise<void>((wake) => void timers.schedule(POLL_MS, wake))
    }
  } finally {
    cancel()
  }
}
