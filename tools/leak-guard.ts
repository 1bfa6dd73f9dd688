// Set up for every test file (vitest.config.ts): a file that leaves a timer, socket, server, watcher, child process or
// worker behind fails, even if each of its tests passed. What is unref'd does not count: it holds nothing open.
//
// vitest has `detectAsyncLeaks`, which also sees promises that never settle; it takes a stack trace for every promise
// (40 microseconds each, measured), and a run with leaks still ends with code 0.
import type { Worker } from 'node:worker_threads'
import { afterAll } from 'vitest'

const GRACE_MS = 1000
const POLL_MS = 10

const heldBefore = process.getActiveResourcesInfo()
const workers = new Set<Worker>()

function noteWorker(worker: Worker): void {
  workers.add(worker)
  worker.once('exit', () => workers.delete(worker))
}

process.on('worker', noteWorker)

function leftBehind(): string[] {
  const before = [...heldBefore]
  const resources = process.getActiveResourcesInfo().filter((kind) => {
    const known = before.indexOf(kind)
    if (known >= 0) before.splice(known, 1)
    return known < 0
  })
  return [...resources, ...Array.from(workers, () => 'Worker')]
}

async function expectNothingLeftBehind(): Promise<void> {
  const giveUpAt = performance.now() + GRACE_MS
  // A socket that was closed is still held until the other end has answered.
  while (leftBehind().length > 0 && performance.now() < giveUpAt) {
    await new Promise((wake) => setTimeout(wake, POLL_MS))
  }
  const left = leftBehind()
  // The process may run other files, which have a guard of their own.
  process.off('worker', noteWorker)
  if (left.length > 0) {
    throw new Error(
      `This file leaves behind: ${left.sort().join(', ')}. Close it in the test that opened it (onTestFinished), ` +
        'or in afterAll.',
    )
  }
}

// Hooks registered first end last, so this one sees what the file's own clean-up left. A time limit of 0 means none:
// the timer of a limit would itself be one too many.
afterAll(expectNothingLeftBehind, 0)
