import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/store-redis'

// One node of several that share hot keys under leases. Waits for the word on its standard input, asks for a fixed
// time, and prints what it asked and what was admitted for each key. Started by the redis-leased bench.

interface Setting {
  readonly url: string
  readonly limit: number
  readonly keys: number
  readonly callers: number
  readonly runMs: number
}

/** Decisions between two looks at the clock. */
const ROUND = 64

const { url, limit, keys, callers, runMs } = JSON.parse(process.argv[2]!) as Setting
const store = redisStore(url, { prefix: 'leased', leases: true, failureMode: 'closed', deadlineMs: 10_000 })
await store.ready()
const limiter = createLimiter<'async'>({ algorithm: 'fixed-window', limit, window: '52w', store })
const names = Array.from({ length: keys }, (_, key) => `hot-${key}`)
const admitted = names.map(() => 0)
// A warm start, on keys of its own, so that what is measured is the steady state.
for (let round = 0; round < 200_000; round++) await limiter.check(`warm-${process.pid}`)
process.stdout.write('ready\n')
await new Promise<void>((resolve) => process.stdin.once('data', () => resolve()))

let decisions = 0
const endAt = performance.now() + runMs
await Promise.all(
  Array.from({ length: callers }, async (_, caller) => {
    let key = caller % keys
    while (performance.now() < endAt) {
      for (let round = 0; round < ROUND; round++) {
        const { allowed } = await limiter.check(names[key]!)
        if (allowed) admitted[key]!++
        decisions++
        key = key + 1 < keys ? key + 1 : 0
      }
    }
  }),
)
await store.close()
process.stdout.write(`${JSON.stringify({ decisions, admitted })}\n`)
process.exit(0)
