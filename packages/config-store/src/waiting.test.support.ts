import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemTimers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import { onTestFinished } from 'vitest'

const LONGEST_MS = 20_000

/** Asks every 5 ms until the answer is yes; fails after 20 seconds. Resolves with the milliseconds it took. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<number> {
  const startedMs = systemMonotonicMs()
  while (!(await holds())) {
    if (systemMonotonicMs() - startedMs > LONGEST_MS) throw new Error(`waited ${LONGEST_MS} ms in vain until ${what}`)
    await new Promise<void>((resolve) => void systemTimers.schedule(5, resolve))
  }
  return systemMonotonicMs() - startedMs
}

/** Prints a measured figure below the tests: what is asserted is a bound, what was measured is worth knowing. */
export function figure(text: string): void {
  process.stdout.write(`  measured: ${text}\n`)
}

/** A folder of its own, gone when the test is. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-config-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}
