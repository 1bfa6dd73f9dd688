import { setTimeout } from 'node:timers/promises'

// The only file of the command line that touches the real clock and real timers.

/** The wall clock in milliseconds since 1970. */
export const systemNowMs = (): number => Date.now()

/** Calls `run` every `ms` milliseconds until the returned function is called. Does not keep the process alive. */
export function systemEvery(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms)
  timer.unref()
  return () => clearInterval(timer)
}

/** Waits `ms` milliseconds. Rejects if the signal aborts. */
export async function systemWait(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal })
}
