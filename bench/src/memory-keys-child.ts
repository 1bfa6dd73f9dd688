import { createLimiter } from '@sluice/core'
import { MemoryStore } from 'express-rate-limit'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { keySequence } from './key-sequence.ts'

// Drives one candidate in a process of its own and prints its best rate. Started by the memory-keys bench.

const WINDOW_MS = 60_000

/**
 * High enough that nothing is denied: rate-limiter-flexible rejects a promise for a denial, which would cost it more.
 */
const LIMIT = 1_000_000

type Pass = (sequence: Uint32Array) => Promise<void> | void

const CANDIDATES: Readonly<Record<string, () => Pass>> = {
  'sluice check': () => {
    const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS })
    return (ids) => {
      for (const key of ids) limiter.check(`user:${key}`)
    }
  },
  'sluice tryAcquire': () => {
    const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS })
    return (ids) => {
      for (const key of ids) limiter.tryAcquire(`user:${key}`)
    }
  },
  'rate-limiter-flexible': () => {
    const limiter = new RateLimiterMemory({ points: LIMIT, duration: WINDOW_MS / 1000 })
    return async (ids) => {
      for (const key of ids) await limiter.consume(`user:${key}`)
    }
  },
  'express-rate-limit': () => {
    const store = new MemoryStore()
    store.init({ windowMs: WINDOW_MS } as Parameters<MemoryStore['init']>[0])
    return async (ids) => {
      for (const key of ids) await store.increment(`user:${key}`)
    }
  },
}

const [candidate = '', calls = '', keys = '', passes = ''] = process.argv.slice(2)
const sequence = keySequence(Number(calls), Number(keys))
const run = CANDIDATES[candidate]!()
let best = 0
for (let pass = 0; pass < Number(passes); pass++) {
  const started = performance.now()
  await run(sequence)
  best = Math.max(best, sequence.length / ((performance.now() - started) / 1000))
}
process.stdout.write(JSON.stringify({ opsPerSecond: best }))
process.exit(0)
