import type { Store } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { FakeClock, FakeTimers } from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { redisStore } from '../redis-store.ts'
import { figure, until } from './ground.test.support.ts'
import { LimiterProcess } from './limiter-process.test.support.ts'

const LIMIT = 10
const LEASE_MS = 1000
const rules = { slots: { algorithm: 'concurrency' as const, limit: LIMIT, lease: LEASE_MS } }
const options = { prefix: 'slots', deadlineMs: 10_000, failureMode: 'closed' as const }

const server = await startRedis()
const store = redisStore(server.url, options)
const limiter = createLimiter<'slots', 'async'>({ store, rules }).limiter('slots')

afterAll(async () => {
  await store.close()
  await server.close()
})

const startProcesses = (times: number): Promise<LimiterProcess[]> =>
  LimiterProcess.startAll(times, () => ({ target: server.url, options, rules }))

describe('a slot with waiting callers', () => {
  // A lease that does not end during the test.
  const rule = { algorithm: 'concurrency' as const, limit: 1, lease: 3_600_000, name: 'jobs' }

  it('goes to a waiter of the process that releases it, or of another process', async () => {
    const elsewhere = redisStore(server.url, options)
    onTestFinished(() => elsewhere.close())
    const [here, there] = [createLimiter({ ...rule, store }), createLimiter({ ...rule, store: elsewhere })]
    for (const holder of [here, there]) {
      const slot = await holder.reserve('job')
      const order: number[] = []
      const waiting = [0, 1, 2].map(async (waiter) => {
        const decision = await here.acquire('job')
        order.push(waiter)
        expect(decision.allowed).toBe(true)
        await here.refund(decision)
      })
      // Its turn comes only after the release.
      expect(await here.peek('job')).toMatchObject({ allowed: false, reason: 'limit' })
      expect(order).toEqual([])
      if (slot.allowed) await slot.release()
      await Promise.all(waiting)
      expect(order).toEqual([0, 1, 2])
    }
  })

  it('is polled ten times a second, and a few times more at first, until it is released', async () => {
    const elsewhere = redisStore(server.url, options)
    onTestFinished(() => elsewhere.close())
    const holder = createLimiter({ ...rule, store: elsewhere })
    const slot = await holder.reserve('polled')
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    let asked = 0
    const counting: Store<'async'> = {
      mode: 'async',
      decide: async (batch) => {
        asked++
        await store.decide(batch)
      },
      settle: (receipt, actuals) => store.settle(receipt, actuals),
      block: (name, key, term) => store.block(name, key, term),
      reset: (limits, key) => store.reset(limits, key),
      close: () => store.close(),
    }
    const waiting = createLimiter({ ...rule, store: counting, clock, timers }).acquire('polled')
    // Time goes on only when the waiter has asked and pauses.
    for (let elapsedMs = 0; elapsedMs < 1150; elapsedMs += 10) {
      await until('the waiter pauses', () => Promise.resolve(timers.pending > 0))
      await timers.advance(10)
    }
    // At 0, 10, 30, 70 and 150 ms, and every 100 ms from then on.
    expect(asked).toBe(5 + 10)
    await until('the last attempt is answered', () => Promise.resolve(timers.pending > 0))
    if (slot.allowed) await slot.release()
    await timers.advance(100)
    expect(await waiting).toMatchObject({ allowed: true })
  })
})

describe('concurrency slots of several processes', () => {
  it('come back when their holders are killed: at the end of the lease, not before, and all of them', async () => {
    const processes = await startProcesses(3)
    const held = await Promise.all(processes.map((one) => one.order('hold', { rule: 'slots', key: 'held', times: 8 })))
    expect(held[0]! + held[1]! + held[2]!).toBe(LIMIT)
    const { remaining, resetAt } = await limiter.peek('held')
    expect(remaining).toBe(0)
    await Promise.all(processes.map((one) => one.kill()))
    const backMs = await until('a slot is back', async () => (await limiter.peek('held')).remaining! > 0)
    const allMs = await until('all slots are back', async () => (await limiter.peek('held')).remaining === LIMIT)
    const [seconds, micros] = (await server.command('TIME')) as [string, string]
    const lateMs = Number(seconds) * 1000 + Number(micros) / 1000 - resetAt
    figure(
      `slots of killed holders: the first back ${backMs.toFixed(0)} ms after the kill, the last ` +
        `${allMs.toFixed(0)} ms later, ${lateMs.toFixed(0)} ms after the end of the leases (server time)`,
    )
    // All were taken by then, and none may come back before its lease is over.
    expect(lateMs).toBeGreaterThanOrEqual(0)
    expect(backMs + allMs).toBeLessThanOrEqual(LEASE_MS + 1000)
    const taken = await Promise.all(Array.from({ length: LIMIT + 5 }, () => limiter.reserve('held')))
    const reservations = taken.filter((answer) => 'release' in answer)
    expect(reservations.length).toBe(LIMIT)
    await Promise.all(reservations.map((reservation) => reservation.release()))
    expect((await limiter.peek('held')).remaining).toBe(LIMIT)
  })

  it('are never held by more than the limit at once, while processes work and are killed', async () => {
    const oracle = 'oracle'
    const processes = await startProcesses(4)
    const order = { url: server.url, rule: 'slots', key: 'busy', workers: 8, oracle }
    const timesWorked = async (): Promise<number> => Number((await server.command('GET', `${oracle}:times`)) ?? 0)
    await Promise.all(processes.map((one) => one.order('work', order)))
    for (const [index, victim] of processes.entries()) {
      const before = await timesWorked()
      await until('there was work', async () => (await timesWorked()) > before + 300)
      await victim.kill()
      // It works no more. What it held comes back to others with the end of its lease.
      const working = (await server.command('ZRANGE', oracle, 0, -1)) as string[]
      for (const name of working) if (name.startsWith(`${victim.pid}-`)) await server.command('ZREM', oracle, name)
      if (index === 2) break
    }
    const before = await timesWorked()
    await until('the last one goes on with all slots', async () => (await timesWorked()) > before + 500)
    await processes[3]!.close()
    await until('all slots are back', async () => (await limiter.peek('busy')).remaining === LIMIT)
    const most = Number(await server.command('GET', `${oracle}:most`))
    figure(`${await timesWorked()} times work by 4 processes, 3 killed: at most ${most} at once, limit ${LIMIT}`)
    expect(most).toBeLessThanOrEqual(LIMIT)
    expect(most).toBeGreaterThanOrEqual(LIMIT - 2)
  })
})
