import type { Limiter, Rule } from '@sluice/core'
import { createLimiter, systemTimers } from '@sluice/core'
import { compileRule, createBatch, createItem, systemMonotonicMs } from '@sluice/core/internal'
import { FakeClock, OPERATION_RULES, seededRandom } from '@sluice/testing'
import { type Reply, startRedis } from '@sluice/testing/servers'
import { createClient } from 'redis'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { nodeRedisConnection } from './clients/node-redis/node-redis-connection.ts'
import { LuaStore } from './lua-store.ts'
import { runAfterIo } from './system/event-loop.ts'
import { RedisKeys } from './wire/call-encoding.ts'
import { ScriptRunner } from './wire/script-runner.ts'

const server = await startRedis()
const client = createClient({ url: server.url })
await client.connect()

afterAll(async () => {
  client.destroy()
  await server.close()
})

let clock = new FakeClock()

beforeEach(async () => {
  clock = new FakeClock()
  await server.command('FLUSHALL')
})

/** A store as another process would have it. */
function newStore(): LuaStore {
  const connection = nodeRedisConnection(client, () => Promise.resolve())
  const runner = new ScriptRunner(connection, () => Promise.resolve())
  return new LuaStore({
    connection,
    runner,
    prefix: 'records',
    clock,
    usesClock: true,
    monotonicMs: systemMonotonicMs,
    runAfterIo,
    timers: systemTimers,
  })
}

function limiterOf(rule: Rule, name = 'rule'): Limiter<'async'> {
  return createLimiter<'async'>({ ...rule, name, store: newStore(), clock, random: seededRandom(1) })
}

async function keyCount(): Promise<Reply> {
  return await server.command('DBSIZE')
}

/** Every key that would stay for ever. */
async function immortalKeys(): Promise<string[]> {
  const keys = (await server.command('KEYS', '*')) as string[]
  const ttls = await Promise.all(keys.map((key) => server.command('PTTL', key)))
  return keys.filter((_, index) => Number(ttls[index]) <= 0)
}

describe('every key has an end', () => {
  it.each(Object.entries(OPERATION_RULES))('after every operation, at every cost (%s)', async (_name, rule) => {
    const limiter = limiterOf(rule)
    for (const cost of [0, 1, 2, 3, 4]) {
      const decision = await limiter.check('key', { cost })
      expect(await immortalKeys()).toEqual([])
      await limiter.refund(decision)
      expect(await immortalKeys()).toEqual([])
      const reservation = await limiter.reserve('key', { cost: 1 })
      expect(await immortalKeys()).toEqual([])
      if (reservation.allowed) await reservation.settle(2)
      expect(await immortalKeys()).toEqual([])
      await limiter.block('key', '1s')
      expect(await immortalKeys()).toEqual([])
      await limiter.unblock('key')
      clock.advance(400)
    }
  })

  it('also for a lease', async () => {
    const [limit] = compileRule('leased', { limit: 10, window: '1m' })
    const batch = createBatch([createItem(limit!, 'key', 5)])
    batch.leaseMicros = 1_000_000
    batch.holder = 7
    await newStore().decide(batch)
    expect(batch.allowed).toBe(true)
    expect([await keyCount(), await immortalKeys()]).toEqual([1, []])
  })

  it('a denial and a question store nothing', async () => {
    const limiter = limiterOf({ limit: 0, window: '1m' })
    expect((await limiter.check('key')).allowed).toBe(false)
    await limiter.peek('other')
    expect(await keyCount()).toBe(0)
  })

  it('a refund of a window that has passed makes no key', async () => {
    const limiter = limiterOf({ algorithm: 'fixed-window', limit: 5, window: '1s' })
    const decision = await limiter.check('key', { cost: 5 })
    await server.command('FLUSHALL')
    clock.advance(5000)
    expect(await limiter.refund(decision)).toMatchObject({ corrected: 0 })
    expect(await keyCount()).toBe(0)
    expect((await limiter.peek('key')).remaining).toBe(5)
  })

  it('a reset leaves nothing', async () => {
    for (const [name, rule] of Object.entries(OPERATION_RULES)) {
      const limiter = limiterOf(rule, name)
      await limiter.check('key')
      await limiter.reset('key')
    }
    expect(await keyCount()).toBe(0)
  })
})

describe('a record', () => {
  it('survives rules that other processes add, and that this one does not know', async () => {
    const [one, two] = [limiterOf({ limit: 5, window: '1m' }, 'one'), limiterOf({ limit: 7, window: '1m' }, 'two')]
    for (let round = 0; round < 3; round++) {
      await one.check('key')
      await two.check('key')
    }
    expect([(await one.peek('key')).remaining, (await two.peek('key')).remaining]).toEqual([2, 4])
    expect(await keyCount()).toBe(1)
  })

  it('goes on when a rule gets another limit or window', async () => {
    await limiterOf({ limit: 5, window: '1m' }).check('key', { cost: 5 })
    expect((await limiterOf({ limit: 5, window: '1m' }).check('key')).allowed).toBe(false)
    expect(await limiterOf({ limit: 8, window: '1m' }).check('key')).toMatchObject({ allowed: true, remaining: 2 })
    expect((await limiterOf({ limit: 3, window: '1h' }).check('key')).allowed).toBe(false)
  })

  it('drops unused rules when it is rewritten', async () => {
    await limiterOf({ algorithm: 'fixed-window', limit: 5, window: '1s' }, 'gone').check('key')
    const name = new RedisKeys('records').record('key')
    const before = Number(await server.command('STRLEN', name))
    clock.advance(2000)
    await limiterOf({ algorithm: 'fixed-window', limit: 5, window: '1s' }, 'new').check('key')
    expect(Number(await server.command('STRLEN', name))).toBe(before)
  })

  it.each<[string, Rule]>([
    ['one bucket', { limit: 5, window: '1m' }],
    [
      'several buckets',
      {
        windows: [
          { limit: 5, window: '1m' },
          { limit: 50, window: '1h' },
        ],
      },
    ],
  ])('of %s stays in the short form when a charge is corrected', async (_name, rule) => {
    const limiter = limiterOf(rule)
    const name = new RedisKeys('records').record('key')
    await limiter.check('key', { cost: 3 })
    const size = await server.command('STRLEN', name)
    clock.advance(1000)
    await limiter.adjust('key', -1)
    expect([await server.command('GETRANGE', name, '0', '0'), await server.command('STRLEN', name)]).toEqual([
      '\u0002',
      size,
    ])
    expect((await limiter.peek('key')).remaining).toBe(3)
  })

  it('of something else under its key counts for nothing, and is replaced', async () => {
    const name = new RedisKeys('records').record('key')
    await server.command('SET', name, 'of another program')
    expect(await limiterOf({ limit: 5, window: '1m' }).check('key')).toMatchObject({ allowed: true, remaining: 4 })
    await server.command('DEL', name)
    await server.command('LPUSH', name, 'a list')
    expect(await limiterOf({ limit: 5, window: '1m' }).check('key')).toMatchObject({ allowed: true, remaining: 4 })
  })

  it('holds hundreds of rules of one key', async () => {
    const store = newStore()
    const names = Array.from({ length: 300 }, (_, index) => `rule-${index}`)
    const rules = Object.fromEntries(names.map((name) => [name, { limit: 5, window: '1m' } as const]))
    const set = createLimiter<string, 'async'>({ rules, store, clock })
    await Promise.all(names.map((name) => set.limiter(name).check('key')))
    const left = await Promise.all(names.map((name) => set.limiter(name).peek('key')))
    expect(new Set(left.map(({ remaining }) => remaining))).toEqual(new Set([4]))
    const all = await set.checkAll(names.map((rule) => ({ rule, key: 'key' })))
    expect(all.limits).toHaveLength(300)
    expect(new Set(all.limits.map(({ remaining }) => remaining))).toEqual(new Set([3]))
  })
})

describe('the name of a key', () => {
  const names = new RedisKeys('p')

  it('is readable when it is short and plain, and a digest when it is not', () => {
    expect(names.record('user-7')).toBe('p:1:{=user-7}')
    expect(names.record('{user}')).toMatch(/^p:1:\{#[\w-]{43}\}$/)
    expect(names.record('x'.repeat(65))).toMatch(/^p:1:\{#[\w-]{43}\}$/)
  })

  it('is never that of another key, nor longer than a few dozen characters', () => {
    const keys = [
      'a',
      'A',
      '}a',
      '{',
      '=a',
      '#a',
      'a\0',
      'a\n',
      '\ud800',
      '\ud801',
      '\ufffd',
      'é',
      'e\u0301',
      '💧',
      ' a',
    ]
    keys.push(names.record('a'), 'a'.repeat(4096), 'a'.repeat(4095))
    expect(new Set(keys.map((key) => names.record(key))).size).toBe(keys.length)
    expect(Math.max(...keys.map((key) => names.record(key).length))).toBeLessThan(80)
  })
})
