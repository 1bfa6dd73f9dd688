/** Its callbacks are microtasks. Some fake timers of test frameworks replace `queueMicrotask`, and then nothing would be forgotten. */
const thisRun = Promise.resolve()

/**
 * A source of time that is read once for everything that runs in one go: the next caller in line gets the same instant. A
 * burst of checks would otherwise read the clock twice for each. What it says is never older than the code that is running
 * and what was ready to run after it.
 */
export function turnClock(readMs: () => number): () => number {
  let nowMs = 0
  let isFresh = false
  const forget = (): void => {
    isFresh = false
  }
  return () => {
    if (!isFresh) {
      nowMs = readMs()
      isFresh = true
      void thisRun.then(forget)
    }
    return nowMs
  }
}
