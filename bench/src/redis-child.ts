import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/store-redis'
import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient } from 'redis'

// Drives one candidate against one Redis in a process of its own: a number of callers, each asking again as soon as it
// is answered. Prints calls a second and latencies. Started by the Redis benches.

/**
 * High enough that nothing is denied: rate-limiter-flexible rejects a promise for a denial, which would cost it more.
 */
const LIMIT = 900_000_000
const WINDOW_MS = 60_000

interface Setting {
  readonly candidate: string
  readonly url: string
  readonly callers: number
  readonly keys: number
  readonly limits: number
  readonly warmMs: number
  readonly runMs: number
}

interface Candidate {
  readonly ask: (key: string) => Promise<unknown>
  readonly close: () => Promise<unknown> | unknown
}

const CANDIDATES: Readonly<Record<string, (setting: Setting) => Promise<Candidate>>> = {
  async sluice({ url, limits }) {
    const store = redisStore(url, { prefix: `bench-${process.pid}`, failureMode: 'closed', deadlineMs: 10_000 })
    await store.ready()
    const windows = Array.from({ length: limits }, (_, index) => ({
      limit: LIMIT * (index + 1),
      window: WINDOW_MS * (index + 1),
    }))
    const limiter = createLimiter<'async'>({ algorithm: 'gcra', windows, store })
    return { ask: (key) => limiter.check(key), close: () => store.close() }
  },
  async 'rate-limiter-flexible, node-redis'({ url }) {
    const client = createClient({ url })
    await client.connect()
    const limiter = new RateLimiterRedis({ storeClient: client, useRedisPackage: true, ...peerRule() })
    return { ask: (key) => limiter.consume(key), close: () => client.destroy() }
  },
  async 'rate-limiter-flexible, ioredis'({ url }) {
    const client = new Redis(url)
    await client.ping()
    const limiter = new RateLimiterRedis({ storeClient: client, ...peerRule() })
    return { ask: (key) => limiter.consume(key), close: () => client.disconnect() }
  },
}

function peerRule(): { points: number; duration: number; keyPrefix: string } {
  return { points: LIMIT, duration: WINDOW_MS / 1000, keyPrefix: `peer-${process.pid}` }
}

interface Outcome {
  readonly answers: number
  /** How long answers took, in milliseconds, of those that were timed. */
  readonly latencies: Float64Array
}

/**
 * Asks with `callers` callers at once for some time. One in eight looks at the clock for every answer: all of them
 * would take a tenth of the time of a fast candidate.
 */
async function load(candidate: Candidate, { callers, keys }: Setting, ms: number): Promise<Outcome> {
  const latencies = new Float64Array(1_000_000)
  const endAt = performance.now() + ms
  let isOver = false
  let answers = 0
  let timed = 0
  let draw = 1
  const ask = (): Promise<unknown> => {
    draw = (Math.imul(draw, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff
    answers++
    return candidate.ask(`user-${draw % keys}`)
  }
  const askAndTime = async (): Promise<void> => {
    for (let startedAt = performance.now(); startedAt < endAt; ) {
      await ask()
      const answeredAt = performance.now()
      latencies[timed++] = answeredAt - startedAt
      startedAt = answeredAt
    }
    isOver = true
  }
  const askOn = async (): Promise<void> => {
    while (!isOver) await ask()
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => (caller % 8 === 0 ? askAndTime() : askOn())))
  return { answers, latencies: latencies.subarray(0, timed) }
}

const setting = JSON.parse(process.argv[2]!) as Setting
const chosen = await CANDIDATES[setting.candidate]!(setting)
await load(chosen, setting, setting.warmMs)
const { answers, latencies } = await load(chosen, setting, setting.runMs)
await chosen.close()
latencies.sort()
process.stdout.write(
  JSON.stringify({
    opsPerSecond: answers / (setting.runMs / 1000),
    p50Ms: latencies[Math.floor(latencies.length * 0.5)],
    p99Ms: latencies[Math.floor(latencies.length * 0.99)],
  }),
)
process.exit(0)
