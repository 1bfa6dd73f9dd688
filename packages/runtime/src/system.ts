import { describeValue, RuntimeError } from './errors.ts'
import { requireNumber } from './option-range.ts'

// The only file of this package that touches the real clock, the real timers and real randomness. Nothing here is a
// hidden default: a caller that wants the real thing passes it in by name. Browsers have all of it, or something like it.

/** The system's wall clock in milliseconds. It goes back when the system's time is corrected. */
export const systemNowMs = (): number => Date.now()

/** The system's random numbers, from 0 (included) to 1 (excluded). Not for secrets. */
export const systemRandom = (): number => Math.random()

// A longer timer overflows to 1 ms in Node and in browsers, so long waits are made of several.
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Waits on a real timer, `delayMs` rounded up to whole milliseconds; any finite length, also beyond the 24.8 days of
 * one timer. Zero still gives way to other work. The timer keeps the process alive until it fires or is aborted.
 *
 * Rejects at once with `signal.reason` when `signal` aborts or already has, and leaves no timer and no listener.
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

/** Kept from the start: fake timers of test frameworks replace it, and calls would wait until time is moved on. */
const immediate = globalThis.setImmediate as typeof setImmediate | undefined

/**
 * Runs something at the end of this turn of the event loop: after the callbacks of all input that has arrived, and before
 * waiting for more. Where the platform cannot say when that is, as in browsers, after the code that runs now.
 */
export function systemTurnEnd(run: () => void): void {
  if (immediate === undefined) queueMicrotask(run)
  else immediate(run)
}

/**
 * Reads the wall clock: milliseconds since 1970-01-01T00:00:00Z, whole or fractional.
 *
 * It may stand still, jump forward and go back; every user of it in this package says what it does then.
 */
export type NowMs = () => number

/**
 * Waits `delayMs` milliseconds (zero or more, never less than asked), then resolves.
 *
 * When `signal` aborts, before or during the wait, it rejects at once with `signal.reason` and holds no timer and no
 * listener any more.
 */
export type Sleep = (delayMs: number, signal?: AbortSignal) => Promise<void>

/** What the clock shows; throws `SLUICE_RUNTIME_INVALID_PORT` when that is not a finite number. */
export function readClock(nowMs: NowMs): number {
  const now = nowMs()
  if (Number.isFinite(now)) return now
  throw new RuntimeError('SLUICE_RUNTIME_INVALID_PORT', {
    received: `${describeValue(now)} from nowMs()`,
    expected: 'a finite number of milliseconds',
    action: 'Pass systemNowMs, or correct the clock that is passed in.',
  })
}

/** Gives the next random number, from 0 (included) to 1 (excluded). Not for secrets. */
export type Random = () => number
