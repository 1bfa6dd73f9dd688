/** Milliseconds since 1970. */
export function nowMs(): number {
  return Date.now()
}

/** Calls `work` once after `delayMs`; the function that is returned prevents it. */
export function after(delayMs: number, work: () => void): () => void {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

/** Calls `work` every `periodMs` until the function that is returned is called. */
export function every(periodMs: number, work: () => void): () => void {
  const timer = setInterval(work, periodMs)
  return () => clearInterval(timer)
}

/** Resolves after `delayMs`, or at once when `signal` is aborted. */
export function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const cancel = after(delayMs, () => {
      signal.removeEventListener('abort', stop)
      resolve()
    })
    const stop = (): void => {
      cancel()
      resolve()
    }
    signal.addEventListener('abort', stop, { once: true })
  })
}

/** A number from 0 up to, but not including, 1; for jitter. */
export function random(): number {
  return Math.random()
}
