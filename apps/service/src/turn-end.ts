/**
 * Runs something at the end of this turn of the event loop: after the callbacks of all input that has arrived, and before
 * waiting for more.
 */
export function atTurnEnd(run: () => void): void {
  setImmediate(run)
}
