import type { Decision, Limiter } from '@sluice/core'
import { createLimiter, systemClock } from '@sluice/core'
import { HOSTILE_KEYS } from '@sluice/testing'
import { type RedisCluster, slotOf, startRedisCluster } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serverCodeOf } from '../connection/connection.ts'
import { type RedisStore, redisStore } from '../redis-store.ts'
import { RedisKeys } from '../wire/call-encoding.ts'
import { Caller } from './caller.test.support.ts'
import { figure, longWindowMs, pause, until } from './ground.test.support.ts'
import { total } from './tally.test.support.ts'

const window = longWindowMs(systemClock.nowMicros() / 1000)
const DEADLINE_MS = 1000
const BOUNDED = 5000

/** A counter in the record, and a log beside it: two keys in one slot. */
const rules = {
  hot: { algorithm: 'fixed-window' as const, limit: 1_000_000, window },
  log: { algorithm: 'sliding-window-log' as const, limit: 100_000, window },
  joint: { algorithm: 'fixed-window' as const, limit: 1_000_000, window },
  bounded: { algorithm: 'fixed-window' as const, limit: BOUNDED, window },
}

/** Codes that a node answered with, where a check had to be decided without it. */
const errorCodes = new Set<string>()

let cluster: RedisCluster
let store: RedisStore

beforeAll(async () => {
  // A primary that is lost must not stop the others: by default, the whole cluster rejects commands while a slot has no
  // primary.
  cluster = await startRedisCluster({ config: { 'cluster-require-full-coverage': 'no' } })
  store = redisStore(cluster.urls, {
    cluster: true,
    prefix: 'cl',
    deadlineMs: DEADLINE_MS,
    failureMode: 'closed',
    observe: (event) => {
      if (event.type === 'failed') errorCodes.add(serverCodeOf((event.error as Error | undefined)?.cause) ?? '')
    },
  })
  await store.ready()
})

afterAll(async () => {
  await store.close()
  await cluster.close()
  expect(errorCodes).not.toContain('CROSSSLOT')
  expect(errorCodes).not.toContain('NOSCRIPT')
})

function limiterOf(rule: keyof typeof rules): Limiter<'async'> {
  return createLimiter<keyof typeof rules, 'async'>({ store, rules }).limiter(rule)
}

function slotOfKey(key: string): number {
  return slotOf(new RedisKeys('cl').record(key))
}

/** Another key in the same slot. */
function neighbourOf(key: string): string {
  for (let number = 0; ; number++) if (slotOfKey(`${key}-${number}`) === slotOfKey(key)) return `${key}-${number}`
}

/** A key that another primary has. */
function elsewhereThan(key: string): string {
  const { id } = cluster.masterOf(slotOfKey(key))
  return ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].find((name) => cluster.masterOf(slotOfKey(name)).id !== id)!
}

async function used(rule: keyof typeof rules, key: string): Promise<number> {
  return rules[rule].limit - (await limiterOf(rule).peek(key)).remaining!
}

function callersOf(rule: keyof typeof rules, key: string, pauseMs = 0): Caller[] {
  const check = (): Promise<Decision> => limiterOf(rule).check(key)
  return Array.from({ length: 4 }, () => new Caller({ check, atOnce: 5, pauseMs }))
}

function admittedBy(callers: readonly Caller[]): number {
  return callers.reduce((sum, { tally }) => sum + tally.allowed, 0)
}

describe('a cluster', () => {
  it('decides about any key in one slot, whatever characters it has', async () => {
    const limiters = createLimiter<keyof typeof rules, 'async'>({ store, rules })
    for (const key of HOSTILE_KEYS) {
      const requests = (['hot', 'log', 'bounded'] as const).map((rule) => ({ rule, key }))
      expect(await limiters.checkAll(requests)).toMatchObject({ allowed: true, failure: undefined })
      expect(await limiters.peekAll(requests)).toMatchObject({ rule: 'bounded', remaining: BOUNDED - 1 })
    }
    const across = HOSTILE_KEYS.map((key) => ({ rule: 'hot' as const, key }))
    expect(await limiters.checkAll(across)).toMatchObject({ allowed: true, failure: undefined })
    for (const key of HOSTILE_KEYS) expect(await used('hot', key)).toBe(2)
  })

  it('moves a hot slot under load: no check fails, and every count stays exact', async () => {
    const key = 'moving'
    const slot = slotOfKey(key)
    const logged = callersOf('log', key)
    const counted = callersOf('hot', key)
    const limiters = createLimiter<keyof typeof rules, 'async'>({ store, rules })
    const both = [
      { rule: 'joint' as const, key: neighbourOf(key) },
      { rule: 'joint' as const, key: 'staying' },
    ]
    const joint = [new Caller({ check: () => limiters.checkAll(both), atOnce: 3 })]
    const callers = [...logged, ...counted, ...joint]
    await until('there is load', () => admittedBy(callers) > 200)
    const from = cluster.masterOf(slot)
    const to = cluster.nodes.find(({ role, id }) => role === 'master' && id !== from.id)!
    const migration = await cluster.beginMigration(slot, to)
    // First the record alone, so that calls for record and log find one here and one there.
    await migration.moveKeys([new RedisKeys('cl').record(key)])
    await migration.moveKeys()
    const halfway = admittedBy(callers)
    await until('calls are answered by both ends', () => admittedBy(callers) > halfway + 100)
    await migration.moveKeys()
    await migration.finish()
    const finished = admittedBy(callers)
    await until('calls are answered by the new end', () => admittedBy(callers) > finished + 200)
    const tallies = await Promise.all(callers.map((caller) => caller.stop()))
    const longestMs = Math.max(...tallies.map((tally) => tally.longestMs))
    figure(
      `slot moved under load: ${admittedBy(callers)} checks, longest ${longestMs.toFixed(1)} ms; ` +
        `${total(joint.map((caller) => caller.tally)).failed} joint ones answered without the store`,
    )
    for (const { tally } of [...logged, ...counted]) expect(tally).toMatchObject({ denied: 0, failed: 0, errors: [] })
    // A decision over several slots needs keys that come and go: on its way such a slot may answer TRYAGAIN for long.
    for (const { tally } of joint) expect(tally).toMatchObject({ denied: 0, unknown: 0, errors: [] })
    expect(await used('hot', key)).toBe(admittedBy(counted))
    expect(await used('log', key)).toBe(admittedBy(logged))
    for (const either of both) {
      await until(
        'charges of denied calls are given back',
        async () => (await used('joint', either.key)) === admittedBy(joint),
      )
    }
  })

  it('during a long slot migration, miscounts nothing and leaves other slots alone', async () => {
    const key = 'halfway'
    const logged = callersOf('log', key, 1)
    const others = callersOf('hot', elsewhereThan(key), 1)
    await until('there is load', () => admittedBy(logged) > 50 && admittedBy(others) > 50)
    const from = cluster.masterOf(slotOfKey(key))
    const to = cluster.nodes.find(({ role, id }) => role === 'master' && id !== from.id)!
    const migration = await cluster.beginMigration(slotOfKey(key), to)
    await pause(300)
    await migration.moveKeys()
    await pause(300)
    await migration.finish()
    const finished = admittedBy(logged)
    await until('the log goes on', () => admittedBy(logged) > finished + 50)
    const tally = total(await Promise.all(logged.map((caller) => caller.stop())))
    const unconcerned = total(await Promise.all(others.map((caller) => caller.stop())))
    figure(
      `slot half way for 600 ms: ${tally.failed} checks of a log answered without the store, ${unconcerned.failed} ` +
        'of other slots',
    )
    expect(tally).toMatchObject({ denied: 0, unknown: 0, errors: [] })
    expect(unconcerned).toMatchObject({ denied: 0, failed: 0, errors: [] })
    expect(await used('log', key)).toBe(admittedBy(logged))
  })

  it('follows a planned failover under load: every count stays exact', async () => {
    const key = 'handed-over'
    const callers = callersOf('hot', key)
    await until('there is load', () => admittedBy(callers) > 200)
    await cluster.failover(cluster.masterOf(slotOfKey(key)))
    const after = admittedBy(callers)
    const ms = await until('the new primary admits', () => admittedBy(callers) > after + 100)
    const tallies = await Promise.all(callers.map((caller) => caller.stop()))
    const failed = tallies.reduce((sum, tally) => sum + tally.failed, 0)
    const unknown = tallies.reduce((sum, tally) => sum + tally.unknown, 0)
    const longestMs = Math.max(...tallies.map((tally) => tally.longestMs))
    figure(
      `fail-over in good order: ${failed} answered without the store (${unknown} of unknown outcome), longest ` +
        `${longestMs.toFixed(1)} ms, ${ms.toFixed(0)} ms to go on`,
    )
    for (const tally of tallies) expect(tally).toMatchObject({ denied: 0, errors: [] })
    const inStore = await used('hot', key)
    expect(inStore).toBeGreaterThanOrEqual(admittedBy(callers))
    expect(inStore).toBeLessThanOrEqual(admittedBy(callers) + unknown)
  })

  it('recovers when a primary is killed under load, over the limit by at most the replication lag', async () => {
    const key = 'killed'
    const master = cluster.masterOf(slotOfKey(key))
    const callers = callersOf('bounded', key, 2)
    const others = callersOf('hot', elsewhereThan(key), 2)
    await until('a third of the limit is used', () => admittedBy(callers) > BOUNDED / 3)
    const beforeLag = admittedBy(callers)
    await pause(100)
    await master.server.kill()
    const atDeath = admittedBy(callers)
    const ms = await until('the new primary admits', () => admittedBy(callers) > atDeath + 50)
    await until('the limit is used up', () => callers.every(({ tally }) => tally.denied > 0))
    const tallies = await Promise.all(callers.map((caller) => caller.stop()))
    const unconcerned = total(await Promise.all(others.map((caller) => caller.stop())))
    const admitted = admittedBy(callers)
    const longestMs = Math.max(...tallies.map((tally) => tally.longestMs))
    figure(
      `keys of other primaries meanwhile: ${unconcerned.allowed} decided by the store, ${unconcerned.failed} ` +
        'without it',
    )
    figure(
      `primary killed: admits again after ${ms.toFixed(0)} ms; ${admitted} of ${BOUNDED} admitted, ` +
        `${Math.max(0, admitted - BOUNDED)} over, bound ${atDeath - beforeLag} (100 ms of admissions); longest ` +
        `check ${longestMs.toFixed(0)} ms`,
    )
    for (const tally of tallies) expect(tally.errors).toEqual([])
    expect(admitted).toBeLessThanOrEqual(BOUNDED + atDeath - beforeLag)
    expect(longestMs).toBeLessThanOrEqual(4 * DEADLINE_MS + 200)
    expect(unconcerned).toMatchObject({ denied: 0, failed: 0, errors: [] })
    await master.server.restart()
    await cluster.untilSettled()
  })

  it('replaces a primary that hangs with open connections, while other keys are checked', async () => {
    const key = 'hanging'
    const master = cluster.masterOf(slotOfKey(key))
    const callers = callersOf('hot', key, 2)
    const others = callersOf('hot', elsewhereThan(key), 2)
    await until('there is load', () => admittedBy(callers) > 100 && admittedBy(others) > 100)
    await master.server.pause()
    const before = admittedBy(callers)
    const ms = await until('the new primary admits', () => admittedBy(callers) > before + 50)
    const tallies = await Promise.all([...callers, ...others].map((caller) => caller.stop()))
    const longestMs = Math.max(...tallies.map((tally) => tally.longestMs))
    figure(
      `primary hangs: its keys are admitted again after ${ms.toFixed(0)} ms; longest check ${longestMs.toFixed(0)} ms`,
    )
    for (const tally of tallies) expect(tally.errors).toEqual([])
    expect(longestMs).toBeLessThanOrEqual(4 * DEADLINE_MS + 200)
    master.server.resume()
    await cluster.untilSettled()
  })

  it('loses at most what an isolated primary admitted before its replacement', async () => {
    const key = 'lonely'
    const slot = slotOfKey(key)
    const master = cluster.masterOf(slot)
    const replica = cluster.replicaOf(master)
    const callers = callersOf('bounded', key, 2)
    await until('a part of the limit is used', () => admittedBy(callers) > BOUNDED / 5)
    const cutOff = admittedBy(callers)
    await pause(50)
    await replica.server.pause()
    await master.server.command('CLIENT', 'KILL', 'TYPE', 'replica')
    const linkCut = admittedBy(callers)
    await until('the primary admits alone', () => admittedBy(callers) > linkCut + 500)
    await master.server.kill()
    const alone = admittedBy(callers) - cutOff
    replica.server.resume()
    await cluster.failover(master)
    await until('the limit is used up', () => callers.every(({ tally }) => tally.denied > 0))
    const tallies = await Promise.all(callers.map((caller) => caller.stop()))
    const admitted = admittedBy(callers)
    const answered = tallies.reduce((sum, { unknown }) => sum + unknown, 0)
    figure(
      `primary alone, then lost: ${admitted - BOUNDED} over the limit, bound ${alone} admitted alone; ${answered} ` +
        'of unknown outcome',
    )
    for (const tally of tallies) expect(tally.errors).toEqual([])
    expect(admitted).toBeLessThanOrEqual(BOUNDED + alone)
    expect(admitted).toBeGreaterThan(BOUNDED)
    await master.server.restart()
    await cluster.untilSettled()
  })

  it('denies while a primary is cut off from the majority, and recovers by itself', async () => {
    const key = 'minority'
    const master = cluster.masterOf(slotOfKey(key))
    const others = cluster.nodes.filter(({ id }) => id !== master.id)
    const callers = callersOf('hot', key, 5)
    await until('there is load', () => admittedBy(callers) > 50)
    await Promise.all(others.map(({ server }) => server.pause()))
    const cutOffMs = await until('the primary rejects writes', () =>
      callers.some(({ failedAtMs, admittedAtMs }) => failedAtMs > admittedAtMs),
    )
    const before = admittedBy(callers)
    for (const { server } of others) server.resume()
    const ms = await until('it admits again', () => admittedBy(callers) > before + 50)
    await cluster.untilSettled()
    const tallies = await Promise.all(callers.map((caller) => caller.stop()))
    const unknown = tallies.reduce((sum, tally) => sum + tally.unknown, 0)
    figure(
      `minority: denied after ${cutOffMs.toFixed(0)} ms, admits ${ms.toFixed(0)} ms after the majority is back; ` +
        `${unknown} of unknown outcome`,
    )
    for (const tally of tallies) expect(tally.errors).toEqual([])
    expect(await used('hot', key)).toBeLessThanOrEqual(admittedBy(callers) + unknown)
  })
})
