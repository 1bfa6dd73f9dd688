import type { Limiter, LimiterSet, Rule } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import {
  deferredStore,
  FakeClock,
  OPERATION_RULES,
  type OperationRule,
  ReferenceStore,
  seededRandom,
} from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import fc from 'fast-check'
import { createClient } from 'redis'
import { afterAll, describe, expect, it } from 'vitest'
import { storeOver } from '../clients/client-trial.test.support.ts'
import { nodeRedisConnection } from '../clients/node-redis/node-redis-connection.ts'

const server = await startRedis()
const client = createClient({ url: server.url })
await client.connect()
const connection = nodeRedisConnection(client, () => Promise.resolve())

afterAll(async () => {
  client.destroy()
  await server.close()
})

/** Scripts that the server has run so far. */
async function scriptsRun(): Promise<number> {
  const stats = String(await server.command('INFO', 'commandstats'))
  return ['evalsha', 'eval'].reduce((sum, name) => {
    return sum + Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
  }, 0)
}

interface Call {
  readonly rule: OperationRule
  readonly key: string
  readonly cost: number
  readonly kind: 'check' | 'peek' | 'partial' | 'reserve' | 'both'
}

const names = Object.keys(OPERATION_RULES) as OperationRule[]

const calls: fc.Arbitrary<readonly (readonly Call[])[]> = fc.array(
  fc.array(
    fc.record({
      // Few rules and keys, so that many calls ask the same.
      rule: fc.oneof({ weight: 3, arbitrary: fc.constantFrom('gcra', 'fixed', 'windows') }, fc.constantFrom(...names)),
      key: fc.constantFrom('a', 'b', '{c}'),
      cost: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, fc.nat(4)),
      kind: fc.oneof(
        { weight: 8, arbitrary: fc.constant('check' as const) },
        fc.constantFrom('peek' as const, 'partial' as const, 'reserve' as const, 'both' as const),
      ),
    }),
    { minLength: 1, maxLength: 30 },
  ),
  { minLength: 1, maxLength: 4 },
)

async function ask(set: LimiterSet<OperationRule>, { rule, key, cost, kind }: Call): Promise<unknown> {
  const limiter: Limiter = set.limiter(rule)
  switch (kind) {
    case 'check':
      return { ...(await limiter.check(key, { cost })) }
    case 'peek':
      return { ...(await limiter.peek(key, { cost })) }
    case 'partial':
      return { ...(await limiter.check(key, { cost, partial: true })) }
    case 'reserve': {
      const answer = await limiter.reserve(key, { cost })
      return { ...(answer.allowed ? answer.decision : answer) }
    }
    case 'both':
      return {
        ...(await set.checkAll([
          { rule, key, cost },
          { rule: 'gcra', key: 'shared', cost: 1 },
        ])),
      }
  }
}

describe('checks of one turn', () => {
  it('get the same decisions as one by one, in the order of the calls', async () => {
    await fc.assert(
      fc.asyncProperty(calls, async (turns) => {
        const clock = new FakeClock()
        const both = [storeOver(connection, clock), deferredStore(new ReferenceStore(clock))] as const
        const [batched, alone] = both.map((store) =>
          createLimiter<OperationRule, 'async'>({ rules: OPERATION_RULES, store, clock, random: seededRandom(3) }),
        )
        for (const turn of turns) {
          const together = await Promise.all(turn.map((call) => ask(batched!, call)))
          const onebyone: unknown[] = []
          for (const call of turn) onebyone.push(await ask(alone!, call))
          expect(together).toEqual(onebyone)
          clock.advance(700)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('go out in two calls, the first alone, however many keys and callers there are', async () => {
    const store = storeOver(connection, new FakeClock())
    const limiter = createLimiter({ limit: 100, window: '1m', store })
    await limiter.check('warm')
    const before = await scriptsRun()
    await Promise.all(Array.from({ length: 60 }, (_, index) => limiter.check(`key-${index % 50}`)))
    expect((await scriptsRun()) - before).toBe(2)
  })

  it('are cut into calls of 128 subjects, so that no call holds up the others for long', async () => {
    const store = storeOver(connection, new FakeClock())
    const limiter = createLimiter({ limit: 100, window: '1m', store })
    await limiter.check('warm')
    const before = await scriptsRun()
    await Promise.all(Array.from({ length: 200 }, (_, index) => limiter.check(`key-${index}`)))
    // The first leaves alone, and the next 64 before the turn ends.
    expect((await scriptsRun()) - before).toBe(2 + Math.ceil((200 - 65) / 128))
  })

  it('of one key are merged: 10,000 callers make three calls, and exactly the limit is admitted', async () => {
    const store = storeOver(connection, new FakeClock())
    const limiter = createLimiter({ limit: 100, window: '1m', store })
    const before = await scriptsRun()
    const decisions = await Promise.all(Array.from({ length: 10_000 }, () => limiter.check('hot')))
    expect((await scriptsRun()) - before).toBeLessThanOrEqual(3)
    const admitted = decisions.filter((decision) => decision.allowed)
    expect(admitted.map((decision) => decision.remaining)).toEqual(
      Array.from({ length: 100 }, (_, index) => 99 - index),
    )
    expect(new Set(decisions.slice(100).map((decision) => `${decision.rule} ${decision.reason}`))).toEqual(
      new Set(['default limit']),
    )
  })
})

const ONE_UNIT: Readonly<Record<string, Rule>> = {
  gcra: { algorithm: 'gcra', limit: 1, window: '1m' },
  window: { algorithm: 'fixed-window', limit: 1, window: '1m' },
  bucket: { algorithm: 'token-bucket', capacity: 1, refillPerSecond: 1 },
}

describe('peeks of one turn', () => {
  it.each(Object.keys(ONE_UNIT))(
    'at one key take nothing from each other, however many there are (%s)',
    async (name) => {
      const store = storeOver(connection, new FakeClock())
      const limiter = createLimiter<'async'>({ ...ONE_UNIT[name]!, name: `peeked-${name}`, store })
      const peeks = async (): Promise<readonly boolean[]> =>
        (await Promise.all(Array.from({ length: 16 }, () => limiter.peek('key')))).map(({ allowed }) => allowed)
      expect(await peeks()).toEqual(Array.from({ length: 16 }, () => true))
      expect((await limiter.check('key')).allowed).toBe(true)
      expect(await peeks()).toEqual(Array.from({ length: 16 }, () => false))
    },
  )
})

describe('one exact decision', () => {
  const rules: Readonly<Record<string, Rule>> = OPERATION_RULES

  it.each(Object.keys(rules))('is exactly one call to the store (%s)', async (name) => {
    const limiter = createLimiter<'async'>({ ...rules[name]!, name, store: storeOver(connection, new FakeClock()) })
    await limiter.check('warm')
    const before = await scriptsRun()
    await limiter.check('key')
    expect((await scriptsRun()) - before).toBe(1)
  })
})
