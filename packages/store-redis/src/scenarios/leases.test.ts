import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Decision } from '@sluice/core'
import { createLimiter, systemClock } from '@sluice/core'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { redisStore } from '../redis-store.ts'
import { Caller } from './caller.test.support.ts'
import { figure, longWindowMs, pause, sum, until } from './ground.test.support.ts'
import { LimiterProcess } from './limiter-process.test.support.ts'
import { total } from './tally.test.support.ts'

const LIMIT = 20_000
const window = longWindowMs(systemClock.nowMicros() / 1000)
const rules = { hot: { algorithm: 'fixed-window' as const, limit: LIMIT, window } }
const patient = { deadlineMs: 10_000, failureMode: 'closed' as const }
const pouring = { rule: 'hot', key: 'key', atOnce: 20, pauseMs: 0 }

const server = await startRedis()
const folder = await mkdtemp(join(tmpdir(), 'sluice-sinks-'))
const processes: LimiterProcess[] = []
let sinks: string[] = []
let prefixes = 0

afterEach(async () => {
  await Promise.all(processes.splice(0).map((one) => one.kill()))
})

afterAll(async () => {
  await server.close()
  await rm(folder, { recursive: true })
})

/** Starts processes that share a limit, each with a file that grows by a byte for every check admitted to it. */
async function startProcesses(times: number, leaseMs: number): Promise<{ readonly prefix: string }> {
  const prefix = `leases-${prefixes++}`
  sinks = Array.from({ length: times }, (_, index) => join(folder, `${prefix}-${index}`))
  const options = { ...patient, prefix, leases: { leaseMs } }
  const started = await LimiterProcess.startAll(times, (index) => ({
    target: server.url,
    options,
    rules,
    sinkFile: sinks[index]!,
  }))
  processes.push(...started)
  return { prefix }
}

async function admitted(): Promise<number> {
  return sum(await Promise.all(sinks.map(async (file) => (await stat(file)).size)))
}

/** Waits until nothing has been admitted for so long. */
async function untilUsedUp(quietMs: number): Promise<number> {
  for (let before = -1, now = await admitted(); ; before = now, now = await admitted()) {
    if (now === before && now > 0) return now
    await pause(quietMs)
  }
}

describe('leases of four processes on one hot key', () => {
  it('never admit more than the limit, and use it up', async () => {
    const { prefix } = await startProcesses(4, 500)
    await Promise.all(processes.map((one) => one.order('pour', pouring)))
    const used = await untilUsedUp(700)
    const tallies = await Promise.all(processes.map((one) => one.order('stop', {})))
    const stats = await Promise.all(processes.map((one) => one.order('stats', {})))
    await Promise.all(processes.map((one) => one.close()))
    const exact = redisStore(server.url, { ...patient, prefix })
    const peeked = await createLimiter<'hot', 'async'>({ store: exact, rules }).limiter('hot').peek('key')
    const remaining = peeked.remaining!
    await exact.close()
    const local = sum(stats.map(({ leases }) => leases!.localDecisions))
    figure(
      `4 processes, limit ${LIMIT}: ${used} admitted (${((100 * used) / LIMIT).toFixed(2)} %), ${local} of them ` +
        'from leases',
    )
    expect(total(tallies)).toMatchObject({ allowed: used, failed: 0, errors: [] })
    expect(used).toBeLessThanOrEqual(LIMIT)
    expect(used).toBeGreaterThanOrEqual(0.99 * LIMIT)
    expect(remaining).toBe(LIMIT - used)
    expect(local).toBeGreaterThan(LIMIT / 2)
  })

  it('never admit more than the limit when a process is killed with leases in its hands', async () => {
    const { prefix } = await startProcesses(4, 500)
    await Promise.all(processes.map((one) => one.order('pour', pouring)))
    await until('some of the limit is used', async () => (await admitted()) > LIMIT / 10)
    await processes[0]!.kill()
    const atDeath = await admitted()
    const used = await untilUsedUp(700)
    await Promise.all(processes.slice(1).map((one) => one.close()))
    const exact = redisStore(server.url, { ...patient, prefix })
    const peeked = await createLimiter<'hot', 'async'>({ store: exact, rules }).limiter('hot').peek('key')
    const remaining = peeked.remaining!
    await exact.close()
    figure(
      `killed at ${atDeath} of ${LIMIT}: ${used} admitted, ${LIMIT - used - remaining} lost with the process's leases`,
    )
    expect(used).toBeLessThanOrEqual(LIMIT)
    // Two leases of an eighth of the limit each is the most that one process can take with it.
    expect(LIMIT - used - remaining).toBeLessThanOrEqual(LIMIT / 4)
    expect(remaining).toBeLessThanOrEqual(LIMIT - used)
  })

  it('never admit more than the limit when a process stands still for longer than its lease', async () => {
    await startProcesses(3, 300)
    await Promise.all(processes.map((one) => one.order('pour', { ...pouring, pauseMs: 1 })))
    await until('some of the limit is used', async () => (await admitted()) > LIMIT / 10)
    const [frozen] = processes
    frozen!.freeze()
    const frozenAt = (await stat(sinks[0]!)).size
    await pause(900)
    const thawedAt = await admitted()
    frozen!.thaw()
    const used = await untilUsedUp(500)
    const after = (await stat(sinks[0]!)).size - frozenAt
    figure(
      `stood still for 3 leases: ${thawedAt} admitted when it went on, ${used} of ${LIMIT} in the end, ${after} by it`,
    )
    expect(used).toBeLessThanOrEqual(LIMIT)
    expect(used).toBeGreaterThan(LIMIT / 2)
  })

  it('admit beyond the limit at most what was out on lease and what Redis forgot, when it loses its data', async () => {
    await startProcesses(4, 10_000)
    await Promise.all(processes.map((one) => one.order('pour', { ...pouring, pauseMs: 2 })))
    await until('some of the limit is used', async () => (await admitted()) > LIMIT / 4)
    await Promise.all(processes.map((one) => one.order('stop', {})))
    const stats = await Promise.all(processes.map((one) => one.order('stats', {})))
    const onLease = sum(stats.map(({ leases }) => leases!.heldUnits))
    const lost = await admitted()
    await server.command('FLUSHALL')
    await Promise.all(processes.map((one) => one.order('pour', pouring)))
    const used = await untilUsedUp(1000)
    figure(`data lost: ${used - LIMIT} over the limit, of ${lost} forgotten and ${onLease} on lease`)
    expect(onLease).toBeGreaterThan(0)
    expect(used).toBeLessThanOrEqual(LIMIT + lost + onLease)
  })
})

describe('leases', () => {
  const openStore = (leases: object): ReturnType<typeof redisStore> =>
    redisStore(server.url, { ...patient, prefix: `leases-${prefixes++}`, leases })

  it('are given back when they lie idle: the store is exact again', async () => {
    const store = openStore({ leaseMs: 400 })
    const limiter = createLimiter<'hot', 'async'>({ store, rules }).limiter('hot')
    for (let call = 0; call < 50; call++) expect(await limiter.check('key')).toMatchObject({ allowed: true })
    expect(store.stats().leases!.heldUnits).toBeGreaterThan(0)
    const ms = await until('the lease is given back', () => store.stats().leases!.leases === 0)
    await until('the store is exact', async () => (await limiter.peek('key')).remaining === LIMIT - 50)
    figure(`an idle lease of 400 ms was given back after ${ms.toFixed(0)} ms`)
    await store.close()
  })

  it('are not taken of small limits, which stay exact', async () => {
    const store = openStore({})
    const limiter = createLimiter({ store, limit: 99, window })
    const decisions: Decision[] = []
    for (let call = 0; call < 120; call++) decisions.push(await limiter.check('key'))
    expect(decisions.slice(0, 99).map(({ remaining }) => remaining)).toEqual(
      Array.from({ length: 99 }, (_, n) => 98 - n),
    )
    expect(decisions.slice(99).every(({ allowed }) => !allowed)).toBe(true)
    expect(store.stats().leases).toEqual({ leases: 0, heldUnits: 0, localDecisions: 0, grants: 0 })
    await store.close()
  })

  it('do not keep a check from being answered when Redis dies, and are taken again when it is back', async () => {
    await using fragile = await startRedis()
    const store = redisStore(fragile.url, { deadlineMs: 200, failureMode: 'open', leases: { leaseMs: 200 } })
    await store.ready()
    const limiter = createLimiter<'hot', 'async'>({ store, rules }).limiter('hot')
    const caller = new Caller({ check: () => limiter.check('key'), atOnce: 5, pauseMs: 1 })
    await until('leases are used', () => store.stats().leases!.localDecisions > 100)
    await fragile.kill()
    await until('checks are answered without the store', () => caller.tally.failed > 20)
    await fragile.restart()
    const { grants } = store.stats().leases!
    const ms = await until('leases are used again', () => store.stats().leases!.grants > grants)
    const tally = await caller.stop()
    await store.close()
    figure(
      `leases taken again ${ms.toFixed(0)} ms after the restart; longest check ${tally.longestMs.toFixed(1)} ms, ` +
        'deadline 200 ms',
    )
    expect(tally.errors).toEqual([])
  })
})
