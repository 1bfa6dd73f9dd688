import type { Timers } from '@sluice/core'
import { systemTimers } from '@sluice/core'
import { ServerError } from './server-error.ts'

const POLL_MS = 10
const LONGEST_WAIT_MS = 15_000

/** Options of {@link pollUntil}. */
export interface PollOptions {
  /** What it waits for, as the rest of a sentence that begins with "waited for". */
  readonly what: string
  /** Timeout in milliseconds. Default: 15,000. */
  readonly withinMs?: number
  /** The last obstacle, for the message of the error. */
  readonly explain?: () => string
  readonly timers?: Timers
}

/**
 * Polls until the result is not undefined, 10 ms after each result, and resolves with it. A rejection ends the wait.
 *
 * @throws ServerError `SLUICE_TESTING_TOO_SLOW` at the timeout; a poll in flight is awaited first
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
