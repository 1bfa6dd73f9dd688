// Imported, and not the global one, which fake timers of test frameworks replace: calls would wait until time is moved on.
import { setImmediate } from 'node:timers'

/**
 * Runs something at the end of this turn of the event loop: after the callbacks of all input that has arrived, so that what
 * they ask goes out together, and before waiting for more. Nothing waits for it.
 */
export function atTurnEnd(run: () => void): void {
  setImmediate(run)
}
