import type { SharedMemoryStore } from '@sluice/core'
import { fixedWindow, sharedMemoryStore, systemClock, systemTimers } from '@sluice/core'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SharedSubject } from './race-worker.ts'
import { SharedClock } from './shared-clock.ts'
import type { WorkerPoolOptions } from './worker-pool.ts'
import { WorkerPool } from './worker-pool.ts'

function createPool(options: Partial<WorkerPoolOptions> = {}): WorkerPool {
  const pool = new WorkerPool({
    threads: 3,
    stopwatch: systemClock,
    timers: systemTimers,
    deadlineMs: 50_000,
    ...options,
  })
  onTestFinished(() => pool.close())
  return pool
}

function createSubject(limit: number): { subject: SharedSubject; store: SharedMemoryStore } {
  const clock = SharedClock.create()
  const store = sharedMemoryStore({ maxKeys: 16, maxThreads: 4, clock })
  const rule = fixedWindow({ limit, window: '10s' })
  return { subject: { rule, handle: store.handle(), clockMemory: clock.memory }, store }
}

describe('WorkerPool', () => {
  it('makes every request of a burst, shared out among the threads', async () => {
    const pool = createPool()
    const { subject } = createSubject(1000)
    await pool.attach(subject)
    const { approvedPerNode } = await pool.burst({ nodes: ['a', 'b'], requestsPerNode: 100 })
    expect(approvedPerNode).toEqual([100, 100])
  })

  it('reuses its threads for burst after burst and store after store', async () => {
    const pool = createPool()
    for (const limit of [1, 50]) {
      const { subject } = createSubject(limit)
      await pool.attach(subject)
      expect((await pool.burst({ nodes: ['a'], requestsPerNode: 100 })).approvedPerNode).toEqual([limit])
      expect((await pool.burst({ nodes: ['a'], requestsPerNode: 100 })).approvedPerNode).toEqual([0])
      await pool.detach()
    }
  })

  it('gives the thread numbers of the store back when it detaches', async () => {
    const pool = createPool()
    const { subject } = createSubject(1)
    // One number is the store's own, three are there for the threads.
    for (let times = 0; times < 3; times++) {
      await pool.attach(subject)
      await pool.detach()
    }
  })

  it('measures from the release to the last answer by the stopwatch', async () => {
    let micros = 0
    const pool = createPool({
      stopwatch: {
        nowMicros: () => {
          micros += 2500
          return micros
        },
      },
    })
    await pool.attach(createSubject(1).subject)
    expect((await pool.burst({ nodes: ['a'], requestsPerNode: 10 })).ms).toBe(2.5)
  })

  it('rejects when a thread fails', async () => {
    const pool = createPool()
    const { subject } = createSubject(1)
    const handle = { buffer: new SharedArrayBuffer(8) }
    await expect(pool.attach({ ...subject, handle })).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_CALLER_FAILED',
      received: expect.stringContaining('SLUICE_INVALID_OPTION'),
    })
  })

  it('rejects when the threads do not answer in time', async () => {
    const atOnce = {
      schedule: (_delayMs: number, run: () => void) => {
        run()
        return () => undefined
      },
    }
    const pool = createPool({ timers: atOnce, deadlineMs: 1234 })
    await expect(pool.attach(createSubject(1).subject)).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_CALLERS_STUCK',
      expected: 'all answers within 1234 ms',
    })
  })
})
