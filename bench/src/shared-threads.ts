import { Worker } from 'node:worker_threads'
import { sharedMemoryStore } from '@sluice/core'
import type { Bench, BenchResult } from './bench.ts'
import type { SharedThreadWork } from './shared-threads-worker.ts'

const CALLS_PER_THREAD = 3_000_000
const ROUNDS = 4
const LEAST_RATIO = 1.6

interface Load {
  readonly name: string
  readonly keys: number
  /** For each key. */
  readonly limit: number
}

/** Limits are reached in the first part of a run: what is measured holds both, admission and denial. */
const LOADS: readonly Load[] = [
  { name: 'one hot key', keys: 1, limit: 100_000 },
  { name: '10,000 keys', keys: 10_000, limit: 75 },
]

interface Outcome {
  readonly admitted: number
  readonly started: number
  readonly ended: number
}

function start(work: SharedThreadWork): { readonly ready: Promise<void>; readonly done: Promise<Outcome> } {
  const worker = new Worker(new URL('./shared-threads-worker.ts', import.meta.url), { workerData: work })
  const ready = Promise.withResolvers<void>()
  const done = Promise.withResolvers<Outcome>()
  worker.on('error', (error) => {
    ready.reject(error)
    done.reject(error)
  })
  worker.on('message', (message: 'ready' | Outcome) => (message === 'ready' ? ready.resolve() : done.resolve(message)))
  return { ready: ready.promise, done: done.promise }
}

async function runThreads(
  load: Load,
  threads: number,
): Promise<{ readonly opsPerSecond: number; readonly admitted: number }> {
  const store = sharedMemoryStore({ maxKeys: 50_000 })
  const gate = new SharedArrayBuffer(4)
  const workers = Array.from({ length: threads }, (_, thread) =>
    start({ handle: store.handle(), gate, thread, calls: CALLS_PER_THREAD, keys: load.keys, limit: load.limit }),
  )
  await Promise.all(workers.map(({ ready }) => ready))
  const words = new Int32Array(gate)
  Atomics.store(words, 0, 1)
  Atomics.notify(words, 0)
  const outcomes = await Promise.all(workers.map(({ done }) => done))
  const ms = Math.max(...outcomes.map(({ ended }) => ended)) - Math.min(...outcomes.map(({ started }) => started))
  const admitted = outcomes.reduce((sum, outcome) => sum + outcome.admitted, 0)
  return { opsPerSecond: (threads * CALLS_PER_THREAD) / (ms / 1000), admitted }
}

/** Two threads against one on the same shared memory, and whether the limit held to the unit. */
export const sharedThreads: Bench = {
  id: 'shared-threads',
  title: 'shared memory, two threads against one',
  async run(progress) {
    const results: BenchResult[] = []
    const ratios: Record<string, number> = {}
    const notes: string[] = []
    let exact = true
    for (const load of LOADS) {
      const best: Record<number, number> = { 1: 0, 2: 0 }
      for (let round = 0; round < ROUNDS; round++) {
        for (const threads of [1, 2]) {
          const { opsPerSecond, admitted } = await runThreads(load, threads)
          const expected = load.keys * load.limit
          exact &&= admitted === expected
          if (admitted !== expected)
            notes.push(`${load.name}, ${threads} threads: admitted ${admitted} instead of ${expected}`)
          best[threads] = Math.max(best[threads]!, opsPerSecond)
          progress(
            `${load.name}, ${threads} thread(s): ${Math.round(opsPerSecond).toLocaleString('en')} calls/s, ` +
              `admitted ${admitted}`,
          )
        }
      }
      for (const threads of [1, 2]) {
        results.push({ name: `${load.name}, ${threads} thread(s)`, opsPerSecond: Math.round(best[threads]!) })
      }
      ratios[load.name] = best[2]! / best[1]!
    }
    const floor = Object.fromEntries(LOADS.map((load) => [load.name, LEAST_RATIO]))
    const ok = exact && Object.values(ratios).every((ratio) => ratio >= LEAST_RATIO)
    if (exact) notes.push('every run admitted exactly the limit')
    return { id: 'shared-threads', results, ratios, floor, ok, notes }
  },
}
