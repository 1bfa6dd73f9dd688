import { parentPort, workerData } from 'node:worker_threads'
import { attachSharedMemoryStore, createLimiter, type SharedMemoryHandle } from '@sluice/core'
import { keySequence } from './key-sequence.ts'

/** Data of a thread of the shared-threads bench. */
export interface SharedThreadWork {
  readonly handle: SharedMemoryHandle
  readonly gate: SharedArrayBuffer
  readonly thread: number
  readonly calls: number
  readonly keys: number
  readonly limit: number
}

const work = workerData as SharedThreadWork
const store = attachSharedMemoryStore(work.handle)
const limiter = createLimiter({ algorithm: 'fixed-window', limit: work.limit, window: '365d', store })
// Every thread goes over the keys from another place.
const sequence = keySequence(work.calls + work.thread * 1000, work.keys).subarray(work.thread * 1000)
const gate = new Int32Array(work.gate)

parentPort?.postMessage('ready')
Atomics.wait(gate, 0, 0)
const started = performance.timeOrigin + performance.now()
let admitted = 0
for (const key of sequence) if (limiter.tryAcquire(`user:${key}`)) admitted++
parentPort?.postMessage({ admitted, started, ended: performance.timeOrigin + performance.now() })
await store.close()
