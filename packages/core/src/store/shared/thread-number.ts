import { SluiceError } from '../../errors.ts'
import { HEADER } from './layout.ts'

/**
 * A number for this thread that no other attached thread has. A thread that ends without `close()` keeps its number taken,
 * because nobody can know that it will not come back from a pause.
 */
export function claimThread(halves: Int32Array, maxThreads: number): number {
  for (let thread = 0; thread < maxThreads; thread++) {
    const at = HEADER.threads + (thread >> 5)
    const bit = 1 << (thread & 31)
    if ((Atomics.or(halves, at, bit) & bit) === 0) return thread
  }
  throw new SluiceError('SLUICE_STORE_FULL', {
    problem: 'too many threads are attached to the shared memory store',
    received: maxThreads + 1,
    expected: `at most ${maxThreads}`,
    action: 'Call close() in threads that end, or create the store with a larger maxThreads.',
  })
}

/** Returns a number, for the next thread that attaches. */
export function releaseThread(halves: Int32Array, thread: number): void {
  Atomics.and(halves, HEADER.threads + (thread >> 5), ~(1 << (thread & 31)))
}
