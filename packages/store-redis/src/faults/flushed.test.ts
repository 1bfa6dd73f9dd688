import type { Decision, Rule } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RedisStore } from '../redis-store.ts'
import { redisStore } from '../redis-store.ts'
import { LONG_WINDOW, Tally, until, Witness } from './fault-trial.test.support.ts'

const LIMIT = 100

const RULES: Readonly<Record<string, Rule>> = {
  'fixed-window': { algorithm: 'fixed-window', limit: LIMIT, window: LONG_WINDOW },
  'sliding-window-log': { algorithm: 'sliding-window-log', limit: LIMIT, window: LONG_WINDOW },
  gcra: { limit: LIMIT, window: LONG_WINDOW },
}

let server: RedisServer
let stores = 0

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.close())

function opened(witness?: Witness): RedisStore {
  const prefix = `flushed-${stores++}`
  // Long enough that only an error could keep the store from answering.
  const store = redisStore(server.url, {
    deadlineMs: 10_000,
    denyCache: false,
    prefix,
    ...(witness && { observe: witness.observe }),
  })
  onTestFinished(() => store.close())
  return store
}

/** Makes the server forget all scripts, over and over, until told to stop; resolves with how often it did. */
function forgetting(): () => Promise<number> {
  let isOver = false
  const loop = async (): Promise<number> => {
    const connection = await server.connect()
    let times = 0
    for (; !isOver; times++) await connection.send('SCRIPT', 'FLUSH', 'SYNC')
    await connection.close()
    return times
  }
  const done = loop()
  return () => {
    isOver = true
    return done
  }
}

describe('a server that forgets its scripts', () => {
  it.for(Object.keys(RULES))(
    'no call fails under load, and exactly the limit is admitted: %s',
    async (name, { annotate }) => {
      const witness = new Witness()
      const store = opened(witness)
      const limiter = createLimiter({ ...RULES[name]!, store })
      await limiter.peek('key')
      const stop = forgetting()
      const tally = new Tally()
      // Ten at a time, so that there are many calls, each of which may meet a server that knows nothing.
      for (let round = 0; round < 100; round++) {
        await Promise.all(Array.from({ length: 10 }, () => tally.count(() => limiter.check('key'))))
      }
      const times = await stop()
      expect(tally.origins).toEqual({ store: 1000 })
      expect(tally.admitted).toBe(LIMIT)
      expect(witness.events.filter(({ type }) => type === 'failed')).toEqual([])
      expect(times).toBeGreaterThan(10)
      await annotate(`scripts forgotten ${times} times, ${name}: ${tally}; admitted ${tally.admitted} of ${LIMIT}`)
    },
  )

  it('no call with many keys and rules fails', async ({ annotate }) => {
    const store = opened()
    const limits = createLimiter({ rules: RULES, store })
    const names = Object.keys(RULES)
    const stop = forgetting()
    const keys = Array.from({ length: 200 }, (_, index) => `key-${index}`)
    const decisions: Decision[] = []
    for (let round = 0; round < 5; round++) {
      const asked = keys.flatMap((key) => [
        ...names.map((rule) => limits.limiter(rule).check(key, { cost: 10 })),
        limits.checkAll(names.map((rule) => ({ rule, key, cost: 30 }))),
      ])
      decisions.push(...(await Promise.all(asked)))
    }
    await Promise.all(keys.map((key) => limits.limiter('gcra').reset(key)))
    const times = await stop()
    expect(decisions.filter(({ failure }) => failure !== undefined)).toEqual([])
    // Of each key and rule: 10 + 30, twice, and then twice 10.
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(keys.length * (4 * names.length + 2))
    for (const key of keys) {
      expect((await limits.limiter('fixed-window').peek(key)).remaining).toBe(0)
      expect((await limits.limiter('gcra').peek(key)).remaining).toBe(LIMIT)
    }
    await annotate(`scripts forgotten ${times} times during ${decisions.length} decisions in large calls; no failure`)
  })

  it('no settlement, refund or block fails', async () => {
    const store = opened()
    const limiter = createLimiter({ ...RULES['fixed-window']!, store })
    const forget = (): Promise<unknown> => server.command('SCRIPT', 'FLUSH')
    const decision = await limiter.check('key', { cost: 7 })
    await forget()
    expect(await limiter.refund(decision, 3)).toEqual({ outcome: 'settled', corrected: -3 })
    await forget()
    const reservation = await limiter.reserve('key', { cost: 20 })
    expect(reservation.allowed).toBe(true)
    await forget()
    if ('settle' in reservation) await reservation.settle(5)
    await forget()
    expect((await limiter.peek('key')).remaining).toBe(LIMIT - 9)
    await limiter.block('key', '1m')
    await forget()
    expect((await limiter.check('key')).allowed).toBe(false)
    await forget()
    await limiter.unblock('key')
    expect((await limiter.check('key')).remaining).toBe(LIMIT - 10)
  })
})

describe('a server that loses its data', () => {
  it('by FLUSHALL: every key starts afresh, with no error', async () => {
    const store = opened()
    const limiter = createLimiter({ ...RULES['fixed-window']!, store })
    const before = await limiter.check('key', { cost: LIMIT })
    expect((await limiter.check('key')).allowed).toBe(false)
    await server.command('FLUSHALL')
    expect(await limiter.check('key')).toMatchObject({ allowed: true, remaining: LIMIT - 1, failure: undefined })
    // What was charged before is gone, and giving it back gives no more than there is.
    await limiter.refund(before)
    expect((await limiter.peek('key')).remaining).toBe(LIMIT)
  })

  it('by a restart: the script is sent again, and counting goes on', async () => {
    const witness = new Witness()
    const store = opened(witness)
    const limiter = createLimiter({ ...RULES['gcra']!, store })
    await limiter.check('key', { cost: 40 })
    await server.restart()
    await until('it is connected again', () => store.ready())
    const decisions = await Promise.all(Array.from({ length: LIMIT + 50 }, () => limiter.check('key')))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(LIMIT)
    expect(decisions.filter(({ failure }) => failure !== undefined)).toEqual([])
    expect(witness.messages).toEqual([])
  })
})
