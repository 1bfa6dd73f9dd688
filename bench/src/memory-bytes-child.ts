import { createLimiter } from '@sluice/core'
import { MemoryStore } from 'express-rate-limit'
import { RateLimiterMemory } from 'rate-limiter-flexible'

// Fills one candidate with keys in a process of its own and prints the bytes each took. Started by the memory-bytes
// bench.

const [candidate = '', keysText = ''] = process.argv.slice(2)
const keys = Number(keysText)
const WINDOW_MS = 3_600_000

function used(): number {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** What is filled must be reachable when the memory is measured. */
const alive: unknown[] = []

async function fill(): Promise<void> {
  if (candidate === 'sluice') {
    const limiter = createLimiter({ limit: 100, window: WINDOW_MS })
    alive.push(limiter)
    for (let key = 0; key < keys; key++) limiter.tryAcquire(`user:${key}`)
  } else if (candidate === 'rate-limiter-flexible') {
    const limiter = new RateLimiterMemory({ points: 100, duration: WINDOW_MS / 1000 })
    alive.push(limiter)
    for (let key = 0; key < keys; key++) await limiter.consume(`user:${key}`)
  } else {
    const store = new MemoryStore()
    store.init({ windowMs: WINDOW_MS } as Parameters<MemoryStore['init']>[0])
    alive.push(store)
    for (let key = 0; key < keys; key++) await store.increment(`user:${key}`)
  }
}

const before = used()
await fill()
const after = used()
process.stdout.write(JSON.stringify({ bytesPerKey: (after - before) / keys, alive: alive.length }))
process.exit(0)
