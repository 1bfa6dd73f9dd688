import { systemTimers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'

/** Prints a measured figure below the tests: what is asserted is a bound, what was measured is worth knowing. */
export function figure(text: string): void {
  process.stdout.write(`  measured: ${text}\n`)
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemTimers.schedule(ms, resolve))
}

/** Asks every 5 ms until the answer is yes; fails after 20 seconds. Resolves with the milliseconds it took. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<number> {
  const startedMs = systemMonotonicMs()
  while (!(await holds())) {
    if (systemMonotonicMs() - startedMs > 20_000) throw new Error(`waited 20 s in vain until ${what}`)
    await pause(5)
  }
  return systemMonotonicMs() - startedMs
}

const HOUR_MS = 3_600_000

/** A window in milliseconds that began before now and ends at least an hour later: no test meets its end. */
export function longWindowMs(nowMs: number): number {
  return [10, 7, 11].map((hours) => hours * HOUR_MS).find((ms) => nowMs % ms < ms - HOUR_MS)!
}

/** The value below which `part` (from 0 to 1) of the values lie. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
