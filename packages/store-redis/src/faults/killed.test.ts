import type { LimiterSet, Timers } from '@sluice/core'
import { createLimiter, systemTimers } from '@sluice/core'
import type { RedisServer } from '@sluice/testing/servers'
import { FaultyProxy, startRedis } from '@sluice/testing/servers'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RedisStore, RedisStoreOptions } from '../redis-store.ts'
import { redisStore } from '../redis-store.ts'
import { Callers, LONG_WINDOW, patience, pause, until, Witness } from './fault-trial.test.support.ts'

const DEADLINE_MS = 50
const CALLERS = 50

/** Never reached, so that every answer of the store is an admission. */
const MANY = 1_000_000

const RULES = {
  open: { algorithm: 'fixed-window', limit: MANY, window: LONG_WINDOW, failureMode: 'open' },
  closed: { algorithm: 'fixed-window', limit: MANY, window: LONG_WINDOW, failureMode: 'closed' },
  local: { algorithm: 'fixed-window', limit: MANY, window: LONG_WINDOW, failureMode: 'local' },
} as const

type Name = keyof typeof RULES
const NAMES = Object.keys(RULES) as Name[]

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.close())

interface Trial {
  readonly store: RedisStore
  readonly limits: LimiterSet<Name, 'async'>
  readonly witness: Witness
}

async function trial(target: unknown, options: RedisStoreOptions = {}): Promise<Trial> {
  const witness = new Witness()
  const store = redisStore(target, { deadlineMs: DEADLINE_MS, observe: witness.observe, ...options })
  onTestFinished(() => store.close())
  await store.ready()
  return { store, limits: createLimiter({ rules: RULES, store }), witness }
}

/** Real timers that note the pauses between tries to connect: all others are much shorter or much longer. */
function noting(pausesMs: number[]): Timers {
  return {
    schedule: (ms, run) => {
      if (ms > 10 && ms < 1000) pausesMs.push(ms)
      return systemTimers.schedule(ms, run)
    },
  }
}

/** Units that Redis has counted, by rule. */
async function counted(): Promise<Record<Name, number>> {
  const store = redisStore(server.url, { deadlineMs: 10_000 })
  const limits = createLimiter({ rules: RULES, store })
  const used = { open: 0, closed: 0, local: 0 }
  for (const rule of NAMES) used[rule] = MANY - (await limits.limiter(rule).peek('key')).remaining!
  await store.close()
  return used
}

describe('Redis killed under load', () => {
  it('every check is answered by its rule, and nothing is counted twice or later', async ({ annotate }) => {
    const { store, limits, witness } = await trial(server.url)
    const load = (): Record<Name, Callers> => ({
      open: new Callers(CALLERS / 2, () => limits.limiter('open').check('key')),
      closed: new Callers(CALLERS / 4, () => limits.limiter('closed').check('key')),
      local: new Callers(CALLERS / 4, () => limits.limiter('local').check('key')),
    })

    const before = load()
    await until('some were admitted', () => before.open.tally.admitted > 200)
    await server.kill()
    await until('the breaker is open', () => store.stats().breaker === 'open')
    // No reply of the killed server is still in flight.
    for (const rule of NAMES) await before[rule].stop()

    const away = load()
    await until(
      'the breaker has tried in vain',
      () => witness.breaker.filter((state) => state === 'half-open').length >= 2,
    )
    for (const rule of NAMES) {
      const { tally } = away[rule]
      expect(tally.fellBack).toBe(tally.answered)
      expect(tally.unknown).toBe(0)
      for (const origin of Object.keys(tally.origins))
        expect(origin).toMatch(new RegExp(`^${rule} (breaker|unreachable) no$`))
    }
    expect(away.closed.tally.allowed).toBe(0)
    expect(away.open.tally.allowed).toBe(away.open.tally.answered)

    await server.restart()
    const backMs = await until('Redis is used again', () => NAMES.every((rule) => away[rule].tally.admitted > 0))
    await until('Redis is used as before', () => away.open.tally.admitted > 200)
    for (const rule of NAMES) await away[rule].stop()

    const used = await counted()
    for (const rule of NAMES) {
      const { admitted, unknown, asked, answered, longestMs } = away[rule].tally
      expect(answered).toBe(asked)
      expect(longestMs).toBeLessThan(patience(DEADLINE_MS))
      expect(before[rule].tally.longestMs).toBeLessThan(patience(DEADLINE_MS))
      // Of the new server: what was asked of it, and nothing that was asked before.
      expect(used[rule]).toBeGreaterThanOrEqual(admitted)
      expect(used[rule]).toBeLessThanOrEqual(admitted + unknown)
      await annotate(`killed under load, ${rule}, before: ${before[rule].tally}`)
      await annotate(`killed under load, ${rule}, after: ${away[rule].tally}; counted ${used[rule]} of ${admitted}`)
    }
    expect(witness.breaker.slice(0, 2)).toEqual(['open', 'half-open'])
    expect(witness.breaker.at(-1)).toBe('closed')
    expect(store.stats()).toMatchObject({ breaker: 'closed', calls: { pending: 0 } })
    expect(backMs).toBeLessThan(4000)
    await annotate(`used again ${backMs.toFixed(0)} ms after the restart (aim: 2000)`)
  })

  it('a client of the caller recovers the same way, and is left to the caller', async ({ annotate }) => {
    const client = createClient({ url: server.url, socket: { reconnectStrategy: 50 } })
    client.on('error', () => undefined)
    await client.connect()
    onTestFinished(() => client.destroy())
    const { store, limits } = await trial(client)
    await server.command('FLUSHALL')
    const callers = new Callers(CALLERS, () => limits.limiter('closed').check('key'))
    await until('some were admitted', () => callers.tally.admitted > 200)
    await server.kill()
    await until('the breaker is open', () => store.stats().breaker === 'open')
    await callers.stop()
    const after = new Callers(CALLERS, () => limits.limiter('closed').check('key'))
    await pause(300)
    expect(after.tally.admitted).toBe(0)
    await server.restart()
    const backMs = await until('Redis is used again', () => after.tally.admitted > 200)
    const tally = await after.stop()
    const { closed } = await counted()
    expect(closed).toBeGreaterThanOrEqual(tally.admitted)
    expect(closed).toBeLessThanOrEqual(tally.admitted + tally.unknown)
    expect(tally.longestMs).toBeLessThan(patience(DEADLINE_MS))
    await store.close()
    expect(await client.ping()).toBe('PONG')
    await annotate(`a client of the caller: back after ${backMs.toFixed(0)} ms; ${tally}; counted ${closed}`)
  })
})

describe('Redis killed while units are out on lease', () => {
  it('every check is answered, first from what is held, then by its rule', async ({ annotate }) => {
    const { store, limits } = await trial(server.url, { leases: { leaseMs: 500 } })
    const callers = new Callers(CALLERS, (caller) => limits.limiter(NAMES[caller % NAMES.length]!).check('leased'))
    await until('units are out on lease', () => (store.stats().leases?.localDecisions ?? 0) > 200)
    await server.kill()
    await until('the breaker has opened', () => store.stats().breaker === 'open')
    await until('nothing is held any more', () => store.stats().leases?.heldUnits === 0)
    const { admitted } = callers.tally
    await pause(100)
    expect(callers.tally.admitted).toBe(admitted)
    await server.restart()
    const backMs = await until('Redis is used again', () => callers.tally.admitted > admitted + 200)
    const tally = await callers.stop()
    expect(tally.answered).toBe(tally.asked)
    expect(tally.longestMs).toBeLessThan(patience(DEADLINE_MS))
    expect(backMs).toBeLessThan(4000)
    await annotate(`killed with leases out: ${tally}; back after ${backMs.toFixed(0)} ms`)
  })
})

describe('Redis unreachable for a while', () => {
  it('is probed by one call at a time', async () => {
    const { store, limits, witness } = await trial(server.url)
    await server.kill()
    const callers = new Callers(CALLERS, () => limits.limiter('open').check('key'))
    await until(
      'the breaker has tried twice',
      () => witness.breaker.filter((state) => state === 'half-open').length >= 2,
    )
    await callers.stop()
    const states = witness.breaker
    // Five failures, or the calls in flight together, open it; then it is one call for each time it was half open.
    expect(states.slice(0, 5)).toEqual(['open', 'half-open', 'open', 'half-open', 'open'])
    const firstOpen = witness.events.findIndex((event) => event.type === 'breaker')
    const probes = witness.events
      .slice(witness.events.findIndex((event, index) => index > firstOpen && event.type === 'breaker'))
      .filter((event) => event.type === 'failed' && event.cause !== 'breaker')
    expect(probes.length).toBe(states.filter((state) => state === 'half-open').length)
    expect(store.stats().calls.pending).toBe(0)
    await server.restart()
  })

  it('is not reconnected by all clients at the same moment', async ({ annotate }) => {
    const proxy = await FaultyProxy.start({ port: server.port })
    onTestFinished(() => proxy.close())
    const pausesMs: number[][] = []
    const stores = Array.from({ length: 20 }, () => {
      const own: number[] = []
      pausesMs.push(own)
      return redisStore(`redis://127.0.0.1:${proxy.port}`, { timers: noting(own) })
    })
    onTestFinished(async () => {
      await Promise.all(stores.map((store) => store.close()))
    })
    expect(await Promise.all(stores.map((store) => store.ready()))).not.toContain(false)
    for (const own of pausesMs) own.length = 0
    await proxy.refuse()
    proxy.resetAll()
    await until('all have tried in vain', () => pausesMs.every(({ length }) => length >= 3))
    await proxy.passThrough()
    const tookMs = await until('all are back', () => proxy.connections === stores.length)
    for (const [tries, ms] of [50, 100, 200].entries()) {
      const pauses = pausesMs.map((own) => own[tries]!)
      expect(Math.min(...pauses)).toBeGreaterThanOrEqual(0.75 * ms)
      expect(Math.max(...pauses)).toBeLessThanOrEqual(1.25 * ms)
      expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(0.1 * ms)
      expect(new Set(pauses).size).toBe(stores.length)
    }
    expect(tookMs).toBeLessThan(4000)
    await annotate(`${stores.length} stores came back within ${tookMs.toFixed(0)} ms, each in its own time`)
  })
})
