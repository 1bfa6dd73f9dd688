import { createLimiter } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { redisStore } from '@sluice/store-redis'
import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'

// Calls Redis one request at a time, in a process of its own, and prints what each candidate took. All candidates run
// in this process and take turns in short blocks, so that a slow moment of the machine hits all of them. Started by the
// latency bench.

/** High enough that no call is denied: rate-limiter-flexible rejects a promise for that, which costs it more. */
const LIMIT = 900_000_000
const WINDOW_MS = 60_000
const KEYS = 1000

interface Setting {
  readonly url: string
  /** Candidates, by their names below. */
  readonly names: readonly string[]
  /** Connections of each candidate, each with one call in flight. */
  readonly connections: number
  readonly blocks: number
  /** Calls per connection in one block. */
  readonly calls: number
}

/** What a candidate took in each block. */
export interface LatencyOutcome {
  readonly name: string
  /** Median time of a call, in microseconds. */
  readonly p50Micros: readonly number[]
  /** CPU time of this process per call, in microseconds. */
  readonly clientMicros: readonly number[]
  /** CPU time of Redis per call, in microseconds. */
  readonly serverMicros: readonly number[]
  readonly callsPerSecond: readonly number[]
}

type Call = (key: string) => Promise<unknown>

let stores = 0

/** A store with keys of its own: limits of several candidates would otherwise share the record of a key. */
function storeOf(target: string | Redis, options: { readonly leases?: true } = {}): ReturnType<typeof redisStore> {
  // The defaults of the store, apart from a deadline that a stalled machine does not reach.
  return redisStore(target as string, { prefix: `${process.pid}-${stores++}`, deadlineMs: 10_000, ...options })
}

function peerCall(client: Redis): Call {
  const points = { points: LIMIT, duration: WINDOW_MS / 1000, keyPrefix: `peer-${process.pid}` }
  const limiter = new RateLimiterRedis({ storeClient: client, ...points })
  return (key) => limiter.consume(key)
}

const CANDIDATES: Readonly<Record<string, (url: string) => Promise<Call>>> = {
  async 'INCR, ioredis'(url) {
    const client = new Redis(url)
    await client.ping()
    return (key) => client.incr(key)
  },
  async 'rate-limiter-flexible, ioredis'(url) {
    const client = new Redis(url)
    await client.ping()
    return peerCall(client)
  },
  async 'sluice by URL'(url) {
    const store = storeOf(url)
    await store.ready()
    const limiter = createLimiter<'async'>({ limit: LIMIT, window: WINDOW_MS, store })
    return (key) => limiter.check(key)
  },
  async 'sluice, ioredis'(url) {
    const store = storeOf(new Redis(url))
    await store.ready()
    const limiter = createLimiter<'async'>({ limit: LIMIT, window: WINDOW_MS, store })
    return (key) => limiter.check(key)
  },
  async 'sluice by URL, 3 limits'(url) {
    const store = storeOf(url)
    await store.ready()
    const windows = [1, 60, 1440].map((minutes) => ({ limit: LIMIT, window: minutes * WINDOW_MS }))
    const limiter = createLimiter<'async'>({ windows, store })
    return (key) => limiter.check(key)
  },
  async 'sluice by URL, rule set'(url) {
    const store = storeOf(url)
    await store.ready()
    const rule = { limit: LIMIT, window: WINDOW_MS } as const
    const engine = new PolicyEngine({
      store,
      ruleSet: {
        rules: [
          { resource: '/orders/:id', dimension: 'user', ...rule },
          { resource: '*', dimension: 'ip', ...rule },
          { resource: '*', dimension: 'tenant', ...rule },
        ],
      },
    })
    return async (key) =>
      await engine.check({ resource: '/orders/7', method: 'GET', user: key, ip: '192.0.2.1', tenant: 'acme' })
  },
  async 'sluice by URL, leases'(url) {
    const store = storeOf(url, { leases: true })
    await store.ready()
    const limiter = createLimiter<'async'>({ algorithm: 'fixed-window', limit: LIMIT, window: '52w', store })
    return () => limiter.check('hot')
  },
}

interface Candidate {
  readonly name: string
  readonly calls: readonly Call[]
}

/** Seconds of CPU time that Redis has used. */
async function serverSeconds(monitor: Redis): Promise<number> {
  const info = await monitor.info('cpu')
  const read = (field: string): number => Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(info)?.[1])
  return read('used_cpu_sys') + read('used_cpu_user')
}

async function runBlock({ calls }: Candidate, count: number, monitor: Redis): Promise<number[]> {
  const latencies = new Float64Array(count * calls.length)
  const serverBefore = await serverSeconds(monitor)
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  await Promise.all(
    calls.map(async (call, connection) => {
      for (let index = 0; index < count; index++) {
        const callAt = performance.now()
        await call(`user-${(index * 7 + connection) % KEYS}`)
        latencies[connection * count + index] = performance.now() - callAt
      }
    }),
  )
  const tookMs = performance.now() - startedAt
  const { user, system } = process.cpuUsage(cpuBefore)
  const server = (await serverSeconds(monitor)) - serverBefore
  latencies.sort()
  const total = latencies.length
  return [
    latencies[Math.floor(total / 2)]! * 1000,
    (user + system) / total,
    (server * 1_000_000) / total,
    total / (tookMs / 1000),
  ]
}

const setting = JSON.parse(process.argv[2]!) as Setting
const cpuMonitor = new Redis(setting.url)
const candidates: Candidate[] = []
for (const name of setting.names) {
  const made = Array.from({ length: setting.connections }, () => CANDIDATES[name]!(setting.url))
  candidates.push({ name, calls: await Promise.all(made) })
}
// The compiler is done with all of them before the first block counts.
for (let warm = 0; warm < 5; warm++)
  for (const candidate of candidates) await runBlock(candidate, setting.calls, cpuMonitor)
const measured = new Map(setting.names.map((name): [string, number[][]] => [name, []]))
for (let block = 0; block < setting.blocks; block++) {
  for (const candidate of block % 2 === 0 ? candidates : candidates.toReversed()) {
    measured.get(candidate.name)!.push(await runBlock(candidate, setting.calls, cpuMonitor))
  }
}
const outcomes = [...measured].map(([name, rows]): LatencyOutcome => {
  const column = (index: number): number[] => rows.map((row) => row[index]!)
  return {
    name,
    p50Micros: column(0),
    clientMicros: column(1),
    serverMicros: column(2),
    callsPerSecond: column(3),
  }
})
process.stdout.write(JSON.stringify(outcomes))
process.exit(0)
