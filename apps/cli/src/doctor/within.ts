/** Waits `ms` milliseconds, or until the signal aborts. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>

/** What `work` gives; rejects when that takes longer than `ms`. */
export async function within<T>(ms: number, wait: Wait, work: Promise<T>): Promise<T> {
  const done = new AbortController()
  const expire = async (): Promise<never> => {
    await wait(ms, done.signal)
    throw new Error(`no answer within ${ms} ms`)
  }
  const expiry = expire()
  // Of the two that race, the loser is not looked at any more.
  expiry.catch(() => undefined)
  work.catch(() => undefined)
  try {
    return await Promise.race([work, expiry])
  } finally {
    done.abort()
  }
}
