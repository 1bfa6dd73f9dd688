import type { Decision, LimiterSet, Reservation, Rule, RuleRequest } from '@sluice/core'
import { createLimiter, systemClock } from '@sluice/core'
import { FakeClock, ReferenceStore, seededRandom } from '@sluice/testing'
import { slotOf, startRedis, startRedisCluster } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisStore, redisStore } from '../redis-store.ts'
import { RedisKeys } from '../wire/call-encoding.ts'
import { figure, longWindowMs, until } from './ground.test.support.ts'
import { LimiterProcess } from './limiter-process.test.support.ts'
import { total } from './tally.test.support.ts'

const window = longWindowMs(systemClock.nowMicros() / 1000)
const patient = { deadlineMs: 20_000, failureMode: 'closed' as const }

const server = await startRedis()
const cluster = await startRedisCluster({ masters: 3, replicasPerMaster: 0 })

afterAll(async () => {
  await server.close()
  await cluster.close()
})

/** Numbers from 0 up to `below`, always the same ones. */
function draws(seed: number): (below: number) => number {
  const random = seededRandom(seed)
  return (below) => random.nextUint32() % below
}

const openStore = {
  'one server': (prefix: string) => redisStore(server.url, { ...patient, prefix }),
  'a cluster': (prefix: string) => redisStore(cluster.urls, { ...patient, prefix, cluster: true }),
}

describe.each(['one server', 'a cluster'] as const)('user, tenant and all together, on %s', (where) => {
  let store: RedisStore
  const prefix = 'joint'

  beforeAll(async () => {
    store = openStore[where](prefix)
    await store.ready()
  })

  afterAll(() => store.close())

  /** Waits until every key has just so much left: a part of a denied decision may still be on its way back. */
  async function expectLeft<Name extends string>(
    limiters: LimiterSet<Name, 'async'>,
    expected: readonly { readonly rule: Name; readonly key: string; readonly remaining: number }[],
  ): Promise<void> {
    const look = () =>
      Promise.all(
        expected.map(async ({ rule, key }) => ({
          rule,
          key,
          remaining: (await limiters.limiter(rule).peek(key)).remaining,
        })),
      )
    const goal = JSON.stringify(expected)
    await until(`it stands at ${goal}`, async () => JSON.stringify(await look()) === goal).catch(async () =>
      expect(await look()).toEqual(expected),
    )
  }

  it('are counted in different slots', () => {
    const names = new RedisKeys(prefix)
    expect(new Set(['u0', 't0', 'all'].map((key) => slotOf(names.record(key)))).size).toBe(3)
  })

  it('a denial by one costs the others nothing', async () => {
    const rules = {
      perUser: { limit: 2, window },
      perTenant: { algorithm: 'fixed-window' as const, limit: 50, window },
      overall: { algorithm: 'sliding-window-log' as const, limit: 100, window },
    }
    const limiters = createLimiter<keyof typeof rules, 'async'>({ store, rules })
    const requests = [
      { rule: 'perUser' as const, key: 'ann' },
      { rule: 'perTenant' as const, key: 'acme' },
      { rule: 'overall' as const, key: 'everybody' },
    ]
    const ask = (): Promise<Decision> => limiters.checkAll(requests)
    expect(await ask()).toMatchObject({ allowed: true, rule: 'perUser', remaining: 1 })
    expect(await ask()).toMatchObject({ allowed: true, rule: 'perUser', remaining: 0 })
    for (let times = 0; times < 10; times++) {
      expect(await ask()).toMatchObject({
        allowed: false,
        reason: 'limit',
        rule: 'perUser',
        cost: 0,
        failure: undefined,
      })
    }
    const left = [
      { rule: 'perUser' as const, key: 'ann', remaining: 0 },
      { rule: 'perTenant' as const, key: 'acme', remaining: 48 },
      { rule: 'overall' as const, key: 'everybody', remaining: 98 },
    ]
    await expectLeft(limiters, left)
    const joint = await ask()
    expect(joint.limits.map(({ allowed }) => allowed)).toEqual([false, true, true])
    await expectLeft(limiters, left)
  })

  it('costs of nothing, one, many, and more than there can ever be', async () => {
    const rules = {
      small: { algorithm: 'token-bucket' as const, capacity: 5, refillPerSecond: 0.001 },
      large: { algorithm: 'fixed-window' as const, limit: 100, window },
    }
    const limiters = createLimiter<keyof typeof rules, 'async'>({ store, rules })
    const ask = (cost: number): Promise<Decision> =>
      limiters.checkAll([
        { rule: 'small', key: 'costs-s', cost },
        { rule: 'large', key: 'costs-l', cost },
      ])
    const stands = (small: number, large: number): Promise<void> =>
      expectLeft(limiters, [
        { rule: 'small', key: 'costs-s', remaining: small },
        { rule: 'large', key: 'costs-l', remaining: large },
      ])
    expect(await ask(0)).toMatchObject({ allowed: true, cost: 0 })
    await stands(5, 100)
    expect(await ask(1)).toMatchObject({ allowed: true, cost: 1, remaining: 4 })
    await stands(4, 99)
    expect(await ask(6)).toMatchObject({
      allowed: false,
      reason: 'never',
      rule: 'small',
      retryAfterMs: Number.POSITIVE_INFINITY,
    })
    await stands(4, 99)
    expect(await ask(5)).toMatchObject({ allowed: false, reason: 'limit', rule: 'small' })
    await stands(4, 99)
    expect(await ask(4)).toMatchObject({ allowed: true, cost: 4, remaining: 0 })
    expect(await ask(0)).toMatchObject({ allowed: true, cost: 0 })
    await stands(0, 95)
  })

  it('after 200 mixed calls at once, every counter holds exactly what the admitted calls cost', async () => {
    const rules = {
      user: { limit: 20, window },
      tenant: { algorithm: 'fixed-window' as const, limit: 50, window },
      together: { algorithm: 'sliding-window-counter' as const, limit: 120, window },
    }
    const limiters = createLimiter<keyof typeof rules, 'async'>({ store, rules })
    const draw = draws(5)
    const calls = Array.from({ length: 200 }, () => {
      const cost = draw(4)
      const requests: RuleRequest<keyof typeof rules>[] = [
        { rule: 'user', key: `u${draw(8)}`, cost },
        { rule: 'tenant', key: `t${draw(3)}`, cost },
        { rule: 'together', key: 'all', cost },
      ]
      return requests.slice(0, 1 + draw(3))
    })
    const decisions = await Promise.all(calls.map((requests) => limiters.checkAll(requests)))
    const used = new Map<string, { rule: keyof typeof rules; key: string; used: number }>()
    for (const [index, requests] of calls.entries()) {
      for (const { rule, key, cost = 1 } of requests) {
        const entry = used.get(rule + key) ?? { rule, key, used: 0 }
        used.set(rule + key, { ...entry, used: entry.used + (decisions[index]!.allowed ? cost : 0) })
      }
    }
    const denied = decisions.filter(({ allowed }) => !allowed)
    figure(
      `${where}: ${decisions.length - denied.length} of 200 admitted; denied by ` +
        `${[...new Set(denied.map(({ rule }) => rule))].join(', ')}`,
    )
    expect(decisions.every(({ failure }) => failure === undefined)).toBe(true)
    expect(denied.length).toBeGreaterThan(20)
    const entries = [...used.values()]
    for (const { rule, used: units } of entries) expect(units).toBeLessThanOrEqual(rules[rule].limit)
    await expectLeft(
      limiters,
      entries.map(({ rule, key, used: units }) => ({ rule, key, remaining: rules[rule].limit - units })),
    )
  })
})

describe('user, tenant and all together, checked by four processes', () => {
  it('on a cluster: every counter holds exactly what all admitted calls cost', async () => {
    const rules = {
      each: { algorithm: 'sliding-window-counter' as const, limit: 40, window },
      group: { algorithm: 'sliding-window-log' as const, limit: 70, window },
      everyone: { algorithm: 'fixed-window' as const, limit: 120, window },
    }
    const options = { ...patient, prefix: 'joint-many', cluster: true, denyCache: false as const }
    const processes = await LimiterProcess.startAll(4, () => ({ target: cluster.urls, options, rules }))
    const tallies = await Promise.all(
      processes.map((one, index) =>
        one.order('joint', {
          requests: [
            { rule: 'each', key: `each-${index}` },
            { rule: 'group', key: `group-${index % 2}` },
            { rule: 'everyone', key: 'everyone' },
          ],
          calls: 300,
          perTurn: 5,
        }),
      ),
    )
    await Promise.all(processes.map((one) => one.close()))
    const store = openStore['a cluster']('joint-many')
    const limiters = createLimiter<keyof typeof rules, 'async'>({ store, rules })
    const used = async (rule: keyof typeof rules, key: string): Promise<number> =>
      rules[rule].limit - (await limiters.limiter(rule).peek(key)).remaining!
    const all = total(tallies)
    figure(
      `4 processes, 1200 joint calls on a cluster: ${all.allowed} admitted of at most 120, ${all.failed} given up ` +
        `because a process stood still for too long; denied by ${all.deniedBy.join(', ')}`,
    )
    // A call whose process stands still while others wait for it is undone everywhere. That it costs nothing is shown
    // below.
    expect(all.errors).toEqual([])
    const [a, b, c, d] = tallies.map(({ allowed }) => allowed)
    const counters = async (): Promise<number[]> => [
      ...(await Promise.all([0, 1, 2, 3].map((index) => used('each', `each-${index}`)))),
      ...(await Promise.all([0, 1].map((index) => used('group', `group-${index}`)))),
      await used('everyone', 'everyone'),
    ]
    expect(await counters()).toEqual([a, b, c, d, a! + c!, b! + d!, all.allowed])
    // How many depends on how often calls are in each other's way; that none counts that was denied does not.
    expect(all.allowed).toBeGreaterThan(0)
    await store.close()
  })
})

const RULES: Readonly<Record<string, Rule>> = {
  bucket: { algorithm: 'token-bucket', capacity: 12, refillPerSecond: 3 },
  window: { algorithm: 'fixed-window', limit: 15, window: '4s' },
  counter: { algorithm: 'sliding-window-counter', limit: 15, window: '4s' },
  log: { algorithm: 'sliding-window-log', limit: 9, window: '3s' },
  slots: { algorithm: 'concurrency', limit: 6, lease: '5s' },
}

/** The numbers of a decision that two stores must agree on. */
function numbers({ allowed, reason, remaining, resetAt, retryAfterMs, cost }: Decision): object {
  return { allowed, reason, remaining, resetAt, retryAfterMs, cost }
}

describe('reservations', () => {
  it('settled, released and expired in thousands of interleavings match the reference store', async () => {
    const clock = new FakeClock()
    const reference = createLimiter({ store: new ReferenceStore(clock), rules: RULES })
    const store = redisStore(server.url, { ...patient, prefix: 'reservations', clock, denyCache: false })
    const limiters = createLimiter<string, 'async'>({ store, rules: RULES })
    const draw = draws(11)
    const open: { readonly here: Reservation<'sync'>; readonly there: Reservation<'async'> }[] = []
    let settled = 0

    const reserve = async (rule: string, key: string): Promise<void> => {
      const options = { cost: rule === 'slots' ? 1 : draw(5), expiresAfter: 500 + draw(3000) }
      const here = reference.limiter(rule).reserve(key, options)
      const there = await limiters.limiter(rule).reserve(key, options)
      expect(there.allowed).toBe(here.allowed)
      if ('release' in here && 'release' in there) open.push({ here, there })
    }

    const settle = async (): Promise<void> => {
      const [pair] = open.splice(draw(open.length), 1)
      const actual = pair!.here.decision.rule === 'slots' ? 0 : draw(7)
      const outcome = pair!.here.settle(actual)
      expect(await pair!.there.settle(actual)).toEqual(outcome)
      // A second time changes nothing, whichever way.
      expect(await pair!.there.settle(actual)).toEqual(outcome)
      expect(await pair!.there.release()).toEqual(outcome)
      settled++
    }

    for (let step = 0; step < 4000; step++) {
      const rule = Object.keys(RULES)[draw(5)]!
      const key = `key-${draw(2)}`
      const action = draw(10)
      if (action < 4) await reserve(rule, key)
      else if (action < 8 && open.length > 0) await settle()
      else clock.advance(draw(400))
      const look = numbers(reference.limiter(rule).peek(key))
      expect({ step, ...numbers(await limiters.limiter(rule).peek(key)) }).toEqual({ step, ...look })
    }
    figure(`4000 steps, ${settled} reservations settled or released, ${open.length} forgotten: all balances equal`)
    expect(settled).toBeGreaterThan(800)
    await store.close()
  })
})
