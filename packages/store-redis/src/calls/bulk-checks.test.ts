import type { LimiterSet, Rule } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { deferredStore, FakeClock, ReferenceStore, seededRandom } from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import fc from 'fast-check'
import { createClient } from 'redis'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { storeOver } from '../clients/client-trial.test.support.ts'
import { nodeRedisConnection } from '../clients/node-redis/node-redis-connection.ts'

// Checks of one key by levels or plain windows have ways of their own through the script, shorter than the one for
// everything.

const server = await startRedis()
const client = createClient({ url: server.url })
await client.connect()
const connection = nodeRedisConnection(client, () => Promise.resolve())

afterAll(async () => {
  client.destroy()
  await server.close()
})

/** Rates that are no whole number of micro-units in a microsecond, so that every rounding shows. */
const WINDOWS = [
  { limit: 7, window: 3_001 },
  { limit: 11, window: 9_973 },
  { limit: 23, window: 61_000 },
]

const RULES: Readonly<Record<string, Rule>> = {
  'one level': { limit: 7, window: 3_001 },
  'a level that admits nothing': { limit: 0, window: 3_001 },
  'a level of a fractional capacity': { algorithm: 'token-bucket', capacity: 2.3, refillPerSecond: 0.7 },
  'several levels': { windows: WINDOWS },
  'one fixed window': { algorithm: 'fixed-window', limit: 7, window: 3_001 },
  'a fixed window that admits nothing': { algorithm: 'fixed-window', limit: 0, window: 3_001 },
  'several fixed windows': { algorithm: 'fixed-window', windows: WINDOWS },
  'one sliding counter': { algorithm: 'sliding-window-counter', limit: 7, window: 3_001 },
  'several sliding counters': { algorithm: 'sliding-window-counter', windows: WINDOWS },
}

interface Turn {
  readonly calls: readonly { readonly key: string; readonly cost: number }[]
  /** How far the clock moves after it, in microseconds; below 0 it goes back. */
  readonly micros: number
}

const turns: fc.Arbitrary<readonly Turn[]> = fc.array(
  fc.record({
    calls: fc.array(
      fc.record({
        key: fc.constantFrom('a', 'b'),
        cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 4 })),
      }),
      { minLength: 1, maxLength: 8 },
    ),
    micros: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 0, max: 2_000_000 }) },
      { weight: 2, arbitrary: fc.integer({ min: -3_500_000, max: -1 }) },
      fc.integer({ min: 0, max: 90_000_000 }),
    ),
  }),
  { minLength: 2, maxLength: 12 },
)

describe('checks of one key', () => {
  it.each(Object.entries(RULES))(
    'property: by %s are decided as the reference decides them, also when the clock goes back',
    async (_, rule) => {
      await fc.assert(
        fc.asyncProperty(turns, async (all) => {
          const clock = new FakeClock()
          const [ours, reference] = [storeOver(connection, clock), deferredStore(new ReferenceStore(clock))].map(
            (store) => createLimiter<'async'>({ ...rule, store, clock }),
          )
          for (const { calls, micros } of all) {
            const together = await Promise.all(calls.map(({ key, cost }) => ours!.check(key, { cost })))
            const expected: unknown[] = []
            for (const { key, cost } of calls) expected.push({ ...(await reference!.check(key, { cost })) })
            expect(together.map((decision) => ({ ...decision }))).toEqual(expected)
            clock.setMicros(clock.nowMicros() + micros)
          }
        }),
        { numRuns: 100 },
      )
    },
  )

  it('property: by several rules in one turn match the reference', async () => {
    await fc.assert(
      fc.asyncProperty(turns, async (all) => {
        const clock = new FakeClock()
        const [ours, reference] = [storeOver(connection, clock), deferredStore(new ReferenceStore(clock))].map(
          (store) => createLimiter<keyof typeof RULES_IN_ONE_TURN, 'async'>({ rules: RULES_IN_ONE_TURN, store, clock }),
        )
        const names = Object.keys(RULES_IN_ONE_TURN) as (keyof typeof RULES_IN_ONE_TURN)[]
        for (const { calls, micros } of all) {
          // A call for each rule in turn, so that runs, questions and records of several rules meet in one call of the
          // script.
          const asked = calls.map((call, index) => ({ ...call, rule: names[index % names.length]! }))
          const together = await Promise.all(
            asked.map(({ rule, key, cost }) => ours!.limiter(rule).check(`${rule}-${key}`, { cost })),
          )
          const expected: unknown[] = []
          for (const { rule, key, cost } of asked) {
            expected.push({ ...(await reference!.limiter(rule).check(`${rule}-${key}`, { cost })) })
          }
          expect(together.map((decision) => ({ ...decision }))).toEqual(expected)
          clock.setMicros(clock.nowMicros() + micros)
        }
      }),
      { numRuns: 100 },
    )
  })
})

const COUNTED = {
  level: { limit: 7, window: 3_001 },
  fixed: { algorithm: 'fixed-window', limit: 9, window: 3_001 },
  counter: { algorithm: 'sliding-window-counter', limit: 8, window: 3_001 },
  second: { limit: 23, window: 61_000 },
} as const satisfies Record<string, Rule>

type Counted = keyof typeof COUNTED

/** The same rules on Redis and on the reference. */
function bothSets(clock: FakeClock): readonly LimiterSet<Counted, 'async'>[] {
  return [storeOver(connection, clock), deferredStore(new ReferenceStore(clock))].map((store) =>
    createLimiter<Counted, 'async'>({ rules: COUNTED, store, clock, random: seededRandom(1) }),
  )
}

/** What else may happen to a key. */
async function change(set: LimiterSet<Counted, 'async'>, what: string, key: string): Promise<void> {
  const limiter = set.limiter('level')
  if (what === 'block') await limiter.block(key, '1s')
  else if (what === 'reset') await limiter.reset(key)
  else await limiter.reserve(key, { expiresAfter: '1h' })
}

const questions = fc.array(
  fc.record({
    asked: fc.array(
      fc.array(
        fc.record({
          rule: fc.constantFrom<Counted>('level', 'fixed', 'counter', 'second'),
          key: fc.constantFrom('a', 'b', 'c'),
          cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 0, max: 4 })),
        }),
        { minLength: 2, maxLength: 4 },
      ),
      { minLength: 1, maxLength: 6 },
    ),
    before: fc.option(
      fc.record({ what: fc.constantFrom('block', 'reserve', 'reset'), key: fc.constantFrom('a', 'b') }),
    ),
    micros: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 0, max: 2_000_000 }) },
      { weight: 2, arbitrary: fc.integer({ min: -900_000, max: -1 }) },
      fc.integer({ min: 0, max: 90_000_000 }),
    ),
  }),
  { minLength: 2, maxLength: 10 },
)

describe('checks of several keys', () => {
  it('property: match the reference, with blocks and reservations, while the clock goes back a little', async () => {
    await fc.assert(
      fc.asyncProperty(questions, async (all) => {
        const clock = new FakeClock()
        const [ours, reference] = bothSets(clock)
        let latest = clock.nowMicros()
        for (const { asked, before, micros } of all) {
          if (before !== null) for (const set of [ours!, reference!]) await change(set, before.what, before.key)
          const together = await Promise.all(asked.map((requests) => ours!.checkAll(requests)))
          const expected: unknown[] = []
          for (const requests of asked) expected.push({ ...(await reference!.checkAll(requests)) })
          expect(together.map((decision) => ({ ...decision }))).toEqual(expected)
          // A failover finds a clock that is behind by less than what states are kept longer.
          clock.setMicros(Math.max(latest - 900_000, clock.nowMicros() + micros))
          latest = Math.max(latest, clock.nowMicros())
        }
      }),
      { numRuns: 200 },
    )
  })
})

const apart = fc.record({
  // What has run out is given back at once by the reference, and at the next check by the store: not to be compared
  // when the clock goes back behind that.
  goesBack: fc.boolean(),
  turns: fc.array(
    fc.record({
      asked: fc.uniqueArray(fc.constantFrom<Counted>('level', 'fixed', 'counter', 'second'), { minLength: 2 }),
      cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 4 })),
      isReserved: fc.boolean(),
      micros: fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 0, max: 2_000_000 }) },
        { weight: 3, arbitrary: fc.integer({ min: -3_500_000, max: -1 }) },
        fc.integer({ min: 0, max: 90_000_000 }),
      ),
    }),
    { minLength: 2, maxLength: 14 },
  ),
})

describe('checks of several keys, each of a rule of its own', () => {
  it('property: match the reference when the clock goes back or reservations expire', async () => {
    await fc.assert(
      fc.asyncProperty(apart, async ({ goesBack, turns: all }) => {
        const clock = new FakeClock()
        const sets = bothSets(clock)
        for (const { asked, cost, isReserved, micros } of all) {
          const requests = asked.map((rule) => ({ rule, key: `by ${rule}`, cost }))
          const answers: unknown[] = []
          for (const set of sets) {
            if (isReserved && !goesBack) await set.limiter('fixed').reserve('by fixed', { expiresAfter: '700ms' })
            answers.push({ ...(await set.checkAll(requests)) })
          }
          expect(answers[0]).toEqual(answers[1])
          clock.setMicros(clock.nowMicros() + (goesBack ? micros : Math.abs(micros)))
        }
      }),
      { numRuns: 200 },
    )
  })
})

const RULES_IN_ONE_TURN = {
  level: { limit: 7, window: 3_001 },
  fixed: { algorithm: 'fixed-window', limit: 7, window: 3_001 },
  day: { algorithm: 'fixed-window', limit: 30, window: { calendar: 'day' } },
  counter: { algorithm: 'sliding-window-counter', limit: 7, window: 3_001 },
  levels: { windows: WINDOWS },
  log: { algorithm: 'sliding-window-log', limit: 7, window: 3_001 },
} as const satisfies Record<string, Rule>

const HOUR_MS = 3_600_000

/** Longer than keys outlive their time by under a clock that is not the server's. */
const LONG_MS = 100 * HOUR_MS

const LONG_LIMIT = { limit: 100_000, window: LONG_MS }

/** How long the record of `key` will still be kept, in milliseconds. */
async function keptMs(): Promise<number> {
  const keys = (await server.command('KEYS', '*{=key}*')) as string[]
  expect(keys).toHaveLength(1)
  return Number(await server.command('PTTL', keys[0]!))
}

const COMPANIES = ['alone', 'with another key'] as const

describe.each(COMPANIES)('a key that is checked %s', (company) => {
  beforeEach(() => server.command('FLUSHALL'))

  it.each<[string, Rule, readonly [number, number]]>([
    // The clock is not the server's, so an hour is added.
    ['a level', LONG_LIMIT, [HOUR_MS, LONG_MS]],
    ['several levels', { windows: [LONG_LIMIT, { limit: 100_000, window: LONG_MS / 3 }] }, [HOUR_MS, LONG_MS]],
    ['a fixed window', { algorithm: 'fixed-window', ...LONG_LIMIT }, [HOUR_MS, LONG_MS]],
    ['a sliding counter', { algorithm: 'sliding-window-counter', ...LONG_LIMIT }, [LONG_MS, 2 * LONG_MS]],
  ])('by %s is kept as long as it says something, however it came to be', async (_, rule, lastMs) => {
    const clock = new FakeClock()
    // A little before a window ends: the next charge is in another one, which ends much later.
    clock.setMicros((Math.ceil(clock.nowMicros() / 1000 / LONG_MS) * LONG_MS - 10) * 1000)
    const limiter = createLimiter<'rule', 'async'>({ rules: { rule }, store: storeOver(connection, clock), clock })
    const others = company === 'alone' ? [] : [{ rule: 'rule', key: 'other' } as const]
    await limiter.checkAll([{ rule: 'rule', key: 'key' }, ...others])
    expect(await keptMs()).toBeGreaterThan(lastMs[0])
    clock.advance(20)
    await limiter.checkAll([{ rule: 'rule', key: 'key', cost: 100_000 - 1 }, ...others])
    expect(await keptMs()).toBeGreaterThan(lastMs[1] - HOUR_MS)
  })
})

describe('a level', () => {
  const limit = 7_000_000_003
  const window = 61_000
  // A micro-unit is a millionth, and the window has 61 million microseconds.
  const [units, micros] = [7_000_000_003n, 61n]

  it.each<[string, Rule]>([
    ['alone', { limit, window }],
    [
      'beside another',
      {
        windows: [
          { limit: 7_500_000_000, window: 60_000 },
          { limit, window },
        ],
      },
    ],
    ['with another key', { limit, window }],
  ])('%s sinks by whole micro-units, rounded down, where time by rate is no safe integer', async (company, rule) => {
    const clock = new FakeClock()
    const limiter = createLimiter<'rule', 'async'>({ rules: { rule }, store: storeOver(connection, clock), clock })
    const others = company === 'with another key' ? [{ rule: 'rule', key: 'other' } as const] : []
    const charge = (cost: number): Promise<unknown> => limiter.checkAll([{ rule: 'rule', key: 'key', cost }, ...others])
    const readLevel = async (): Promise<bigint> => {
      const [key] = (await client.sendCommand(['KEYS', '*{=key}*'])) as string[]
      const record = (await client.sendCommand(['GET', key!], { typeMapping: { 36: Buffer } })) as unknown as Buffer
      return BigInt(record.readDoubleLE(record.length - 8))
    }
    await server.command('FLUSHALL')
    await charge(limit)
    let rounded = 0
    for (let step = 1n; step <= 30n; step++) {
      const elapsed = 1_500_001n + 7n * step
      const before = await readLevel()
      clock.setMicros(clock.nowMicros() + Number(elapsed))
      await charge(1)
      const flowed = (elapsed * units) / micros
      if (BigInt(Math.floor((Number(elapsed) * Number(units)) / Number(micros))) !== flowed) rounded++
      expect(await readLevel()).toBe(before - flowed + 1_000_000n)
    }
    // Else the test would say nothing.
    expect(rounded).toBeGreaterThan(0)
  })
})

describe('a bucket of a fractional capacity', () => {
  const bucket: Rule = { algorithm: 'token-bucket', capacity: 2.3, refillPerSecond: 1 }
  const large: Rule = { algorithm: 'token-bucket', capacity: 9.7, refillPerSecond: 5 }
  const rules = { bucket, large }

  it.each<[string, (set: LimiterSet<'bucket' | 'large', 'async'>, cost: number) => Promise<{ allowed: boolean }>]>([
    ['alone', (set, cost) => set.limiter('bucket').check('key', { cost })],
    [
      'beside another',
      (set, cost) =>
        set.checkAll([
          { rule: 'bucket', key: 'key', cost },
          { rule: 'large', key: 'key', cost },
        ]),
    ],
    [
      'with another key',
      (set, cost) =>
        set.checkAll([
          { rule: 'bucket', key: 'key', cost },
          { rule: 'large', key: 'other', cost },
        ]),
    ],
    ['as a reservation', (set, cost) => set.limiter('bucket').reserve('key', { cost })],
  ])('%s holds what is beyond its whole units', async (_company, check) => {
    await server.command('FLUSHALL')
    const clock = new FakeClock()
    const set = createLimiter<'bucket' | 'large', 'async'>({ rules, store: storeOver(connection, clock), clock })
    expect(await check(set, 2)).toMatchObject({ allowed: true })
    clock.setMicros(clock.nowMicros() + 699_999)
    expect(await check(set, 1)).toMatchObject({ allowed: false })
    clock.setMicros(clock.nowMicros() + 1)
    expect(await check(set, 1)).toMatchObject({ allowed: true })
  })
})
