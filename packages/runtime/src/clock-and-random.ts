import { requireNumber } from './option-range.ts'
import { describeValue, RuntimeError } from './runtime-error.ts'

// The only file of this package that uses the real clock, timers and randomness. They are no hidden defaults: callers
// pass them in by name. Browsers have all of them, or an equivalent.

/** The system's wall clock in milliseconds. It goes back when the system time is corrected. */
export const systemNowMs = (): number => Date.now()

/** Random numbers in [0, 1). Not cryptographically secure. */
export const systemRandom = (): number => Math.random()

// A longer timer overflows to 1 ms in Node and in browsers, so long waits use several timers.
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Waits on a real timer. `delayMs` is rounded up to whole milliseconds and may be longer than the 24.8 days of one
 * timer. 0 still yields to other work. The timer keeps the process alive until it fires or is aborted.
 *
 * Rejects immediately with `signal.reason` if `signal` aborts or is already aborted, and leaves no timer and no
 * listener.
 */
export function systemSleep(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let remainingMs = Math.ceil(requireNumber('delayMs', delayMs, { min: 0, max: Number.MAX_SAFE_INTEGER }))
    if (signal?.aborted === true) {
      reject(signal.reason)
      return
    }
    let timer: NodeJS.Timeout
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const schedule = (): void => {
      const partMs = Math.min(remainingMs, LONGEST_TIMER_MS)
      remainingMs -= partMs
      timer = setTimeout(remainingMs > 0 ? schedule : finish, partMs)
    }
    const finish = (): void => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    schedule()
  })
}

/**
 * Captured at load time: fake timers of test frameworks replace it, and callbacks would wait until time is advanced.
 */
const immediate = globalThis.setImmediate as typeof setImmediate | undefined

/**
 * Runs a callback at the end of this turn of the event loop: after the callbacks of all input that has arrived, and
 * before waiting for more. On platforms without `setImmediate`, such as browsers, in a microtask.
 */
export function systemTurnEnd(run: () => void): void {
  if (immediate === undefined) queueMicrotask(run)
  else immediate(run)
}

/**
 * Reads the wall clock: milliseconds since 1970-01-01T00:00:00Z, integer or fractional.
 *
 * It may stand still, jump forward and go back; each user in this package documents the consequences.
 */
export type NowMs = () => number

/**
 * Waits at least `delayMs` milliseconds, then resolves.
 *
 * Rejects immediately with `signal.reason` if `signal` aborts before or during the wait, and leaves no timer and no
 * listener.
 */
export type Sleep = (delayMs: number, signal?: AbortSignal) => Promise<void>

/** Reads the clock. Throws `SLUICE_RUNTIME_INVALID_PORT` if the result is not a finite number. */
export function readClock(nowMs: NowMs): number {
  const now = nowMs()
  if (Number.isFinite(now)) return now
  throw new RuntimeError('SLUICE_RUNTIME_INVALID_PORT', {
    received: `${describeValue(now)} from nowMs()`,
    expected: 'a finite number of milliseconds',
    action: 'Pass systemNowMs, or correct the clock that is passed in.',
  })
}

/** Returns a random number in [0, 1). Not for secrets. */
export type Random = () => number
