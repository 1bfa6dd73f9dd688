import type { Limiter } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { compileRule, createBatch, createItem } from '@sluice/core/internal'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RedisStore } from '../redis-store.ts'
import { redisStore } from '../redis-store.ts'
import { LONG_WINDOW, pause, Tally, until, Witness } from './fault-trial.test.support.ts'

const LIMIT = 3
const RULE = { algorithm: 'fixed-window', limit: LIMIT, window: LONG_WINDOW } as const

let server: RedisServer
let prefixes = 0

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.close())

interface Node {
  readonly store: RedisStore
  readonly limiter: Limiter<'async'>
}

function node(prefix: string, options: { nowMs?: () => number; witness?: Witness } = {}): Node {
  const { nowMs, witness } = options
  const store = redisStore(server.url, {
    prefix,
    deadlineMs: 5000,
    ...(nowMs && { monotonicMs: nowMs }),
    ...(witness && { observe: witness.observe }),
  })
  onTestFinished(() => store.close())
  return { store, limiter: createLimiter({ ...RULE, store }) }
}

/** A node with a fake clock whose key is used up and denied. */
async function deniedNode(): Promise<Node & { prefix: string; advance(ms: number): void }> {
  let nowMs = 1000
  const prefix = `deny-${prefixes++}`
  const made = node(prefix, { nowMs: () => nowMs })
  expect((await made.limiter.check('hot', { cost: LIMIT })).allowed).toBe(true)
  expect((await made.limiter.check('hot')).allowed).toBe(false)
  const advance = (ms: number): void => {
    nowMs += ms
  }
  return { ...made, prefix, advance }
}

/** Scripts that the server has run so far. */
async function scriptsRun(): Promise<number> {
  const stats = String(await server.command('INFO', 'commandstats'))
  return ['evalsha', 'eval'].reduce((sum, name) => {
    return sum + Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
  }, 0)
}

async function costOf(work: () => Promise<unknown>): Promise<number> {
  const before = await scriptsRun()
  await work()
  return (await scriptsRun()) - before
}

describe('a denied key that keeps asking', () => {
  it('costs the server one call in 100 ms, and no more', async () => {
    const { limiter, advance } = await deniedNode()
    const hammer = async (): Promise<void> => {
      for (let call = 0; call < 1000; call++) {
        expect(await limiter.check('hot')).toMatchObject({ allowed: false, reason: 'limit', failure: undefined })
      }
    }
    expect(await costOf(hammer)).toBe(0)
    advance(99)
    expect(await costOf(hammer)).toBe(0)
    advance(1)
    expect(await costOf(hammer)).toBe(1)
  })

  it('does not affect other keys; its other costs and rules go to the store', async () => {
    const { limiter, store } = await deniedNode()
    const others = Array.from({ length: 50 }, (_, index) => `other-${index}`)
    const cost = await costOf(async () => {
      for (const key of others) {
        expect((await limiter.check('hot')).allowed).toBe(false)
        expect(await limiter.check(key)).toMatchObject({ allowed: true, remaining: LIMIT - 1 })
      }
    })
    expect(cost).toBe(others.length)
    const other = createLimiter({ ...RULE, name: 'other', store })
    expect((await other.check('hot')).allowed).toBe(true)
    expect(await costOf(() => limiter.check('hot', { cost: 0 }))).toBe(1)
    expect(await costOf(() => limiter.peek('hot'))).toBe(1)
  })

  it('costs about nothing at the pace of a flood', async ({ annotate }) => {
    const witness = new Witness()
    const { limiter } = node(`deny-${prefixes++}`, { witness })
    await limiter.check('hot', { cost: LIMIT })
    const tally = new Tally()
    let isOver = false
    const flood = async (): Promise<void> => {
      while (!isOver) {
        for (let call = 0; call < 20; call++) await tally.count(() => limiter.check('hot'))
        await pause(1)
      }
    }
    const calls = await costOf(async () => {
      const floods = [flood(), flood()]
      await pause(500)
      isOver = true
      await Promise.all(floods)
    })
    expect(tally.allowed).toBe(0)
    const remembered = witness.events.filter(({ type }) => type === 'remembered').length
    // Checks that are not remembered go to the store, those of one turn in one call; heartbeats come on top.
    expect(calls).toBeLessThanOrEqual(tally.answered - remembered + 5)
    expect(remembered).toBeGreaterThan(tally.answered * 0.9)
    await annotate(`flood: ${tally}; ${calls} calls of the server`)
  })
})

describe('a remembered denial', () => {
  it('ends at once when this process resets the key', async () => {
    const { limiter } = await deniedNode()
    await limiter.reset('hot')
    expect(await limiter.check('hot')).toMatchObject({ allowed: true, remaining: LIMIT - 1 })
  })

  it('ends at once when this process gives something back', async () => {
    const { limiter } = await deniedNode()
    await limiter.reset('hot')
    const charged = await limiter.check('hot', { cost: LIMIT })
    expect((await limiter.check('hot')).allowed).toBe(false)
    await limiter.refund(charged, 1)
    expect(await limiter.check('hot')).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('ends at once when this process raises the limit', async () => {
    const { store } = await deniedNode()
    const [raised] = compileRule('default', { ...RULE, limit: LIMIT + 1 })
    const batch = createBatch([createItem(raised!, 'hot', 1)])
    await store.decide(batch)
    expect(batch).toMatchObject({ allowed: true, failure: undefined })
    expect(batch.items[0]!.verdict.remaining).toBe(0)
  })

  it('ends at once when this process blocks the key, and when it lifts the block', async () => {
    const { limiter } = await deniedNode()
    await limiter.block('hot', '1h')
    expect((await limiter.check('hot')).reason).toBe('blocked')
    await limiter.unblock('hot')
    expect((await limiter.check('hot')).reason).toBe('limit')
  })

  it('ends 100 ms later when another process has changed the key', async () => {
    const { limiter, advance, prefix } = await deniedNode()
    const elsewhere = node(prefix)
    await elsewhere.limiter.reset('hot')
    advance(99)
    expect((await limiter.check('hot')).allowed).toBe(false)
    advance(1)
    expect(await limiter.check('hot')).toMatchObject({ allowed: true, remaining: LIMIT - 1 })
  })

  it('ends about 100 ms later by the clock on the wall', async ({ annotate }) => {
    const prefix = `deny-${prefixes++}`
    const { limiter } = node(prefix)
    const elsewhere = node(prefix)
    await limiter.check('hot', { cost: LIMIT })
    await limiter.check('hot')
    await elsewhere.limiter.reset('hot')
    const tookMs = await until('it is allowed', async () => (await limiter.check('hot')).allowed)
    expect(tookMs).toBeLessThan(2000)
    await annotate(`a reset elsewhere was seen after ${tookMs.toFixed(0)} ms (aim: 100)`)
  })

  it('is never made by a failure of the store', async () => {
    const own = await startRedis()
    onTestFinished(() => own.close())
    const store = redisStore(own.url, { failureMode: 'closed', breaker: { failures: 1 } })
    onTestFinished(() => store.close())
    const limiter = createLimiter({ ...RULE, store })
    await store.ready()
    await own.kill()
    await until('it is denied', async () => (await limiter.check('hot')).reason === 'unavailable')
    await own.restart()
    await until('Redis is used again', async () => (await limiter.check('other')).failure === undefined)
    expect(await limiter.check('hot')).toMatchObject({ allowed: true, failure: undefined })
  })
})
