import type { Limiter } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { RedisServer } from '@sluice/testing/servers'
import { FaultyProxy, startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RedisStore, RedisStoreOptions } from '../redis-store.ts'
import { redisStore } from '../redis-store.ts'
import { Callers, LONG_WINDOW, patience, pause, Tally, until, Witness } from './fault-trial.test.support.ts'

const DEADLINE_MS = 50
const MANY = 1_000_000

/** A breaker that does not open by failures in a row; half of 20 calls within a second still open it. */
const PATIENT = { failures: 1000 }

let server: RedisServer
let prefixes = 0

beforeAll(async () => {
  server = await startRedis()
})

afterAll(async () => {
  await server.close()
})

interface Trial {
  readonly proxy: FaultyProxy
  readonly store: RedisStore
  readonly limiter: Limiter<'async'>
  readonly witness: Witness
  /** Units that Redis has counted for a key. */
  counted(key: string): Promise<number>
}

/** A store behind a network that fails on command, connected, and a look at what arrives behind it. */
async function trial(options: RedisStoreOptions = {}): Promise<Trial> {
  const prefix = `hole-${prefixes++}`
  const rule = { algorithm: 'fixed-window', limit: MANY, window: LONG_WINDOW } as const
  const proxy = await FaultyProxy.start({ port: server.port })
  const witness = new Witness()
  const url = `redis://127.0.0.1:${proxy.port}`
  const store = redisStore(url, { deadlineMs: DEADLINE_MS, observe: witness.observe, ...options, prefix })
  const behind = redisStore(server.url, { deadlineMs: 10_000, prefix })
  onTestFinished(async () => {
    await Promise.all([store.close(), behind.close()])
    await proxy.close()
  })
  const limiter = createLimiter({ ...rule, store })
  const looker = createLimiter({ ...rule, store: behind })
  const counted = async (key: string): Promise<number> => MANY - (await looker.peek(key)).remaining!
  await store.ready()
  await until('the store is connected', async () => (await limiter.check('warm')).failure === undefined)
  await counted('warm')
  return { proxy, store, limiter, witness, counted }
}

function recovered({ limiter }: Trial): Promise<number> {
  return until('Redis is used again', async () => (await limiter.check('probe')).failure === undefined)
}

describe('a network that swallows everything', () => {
  it('every check is answered, the breaker opens, and it is over when the network is back', async ({ annotate }) => {
    const all = await trial({ failureMode: 'closed' })
    const { proxy, store, limiter, witness, counted } = all
    await proxy.blackHole()
    const callers = new Callers(20, () => limiter.check('key'))
    await until('the breaker has tried in vain', () => witness.breaker.filter((state) => state === 'open').length >= 3)
    expect(store.stats().calls.pending).toBeLessThanOrEqual(1)
    const tally = await callers.stop()
    expect(tally.answered).toBe(tally.asked)
    expect(tally.allowed).toBe(0)
    expect(Object.keys(tally.origins).sort()).toEqual(['closed breaker no', 'closed deadline unknown'])
    expect(tally.longestMs).toBeLessThan(patience(DEADLINE_MS))
    await proxy.passThrough()
    const backMs = await recovered(all)
    expect(backMs).toBeLessThan(4000)
    expect(await counted('key')).toBe(0)
    await annotate(`black hole: ${tally}; back after ${backMs.toFixed(0)} ms (aim: 2000); counted 0`)
  })

  it('a connection that stays silent for seconds is given up for a new one', async ({ annotate }) => {
    const all = await trial({ failureMode: 'open' })
    const { proxy, limiter, witness } = all
    const connections = proxy.totals.connections
    await proxy.blackHole()
    const callers = new Callers(5, () => limiter.check('key'))
    const tookMs = await until('it reconnects', () => proxy.totals.connections > connections)
    const tally = await callers.stop()
    expect(tally.allowed).toBe(tally.asked)
    expect(tally.longestMs).toBeLessThan(patience(DEADLINE_MS))
    await proxy.passThrough()
    await recovered(all)
    expect(witness.breaker.at(-1)).toBe('closed')
    await annotate(`silent: a new connection after ${tookMs.toFixed(0)} ms; ${tally}`)
  })

  it('does not hold up the end of the store', async ({ annotate }) => {
    const { proxy, store, limiter } = await trial()
    await proxy.blackHole()
    const pending = limiter.check('key').catch((error: { code?: unknown }) => error.code)
    const startedMs = systemMonotonicMs()
    await store.close()
    const tookMs = systemMonotonicMs() - startedMs
    expect(tookMs).toBeLessThan(patience(DEADLINE_MS))
    expect(await pending).toEqual(expect.anything())
    await expect(limiter.check('key')).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
    await annotate(`closed within ${tookMs.toFixed(1)} ms`)
  })
})

describe('replies that are lost', () => {
  it('the charge is made once, is said to be unknown, and is never sent again', async ({ annotate }) => {
    const all = await trial({ failureMode: 'open', breaker: PATIENT })
    const { proxy, limiter, counted } = all
    await proxy.dropReplies()
    const tally = new Tally()
    const costs = [1, 2, 3, 1, 5, 1, 1, 1]
    for (const cost of costs) {
      const { failure } = await tally.count(() => limiter.check('key', { cost }))
      expect(failure).toEqual({ mode: 'open', cause: 'deadline', charged: 'unknown' })
    }
    const charged = costs.reduce((sum, cost) => sum + cost, 0)
    expect(await counted('key')).toBe(charged)
    await proxy.passThrough()
    await recovered(all)
    expect(await counted('key')).toBe(charged)
    expect(tally.longestMs).toBeLessThan(patience(DEADLINE_MS))
    await annotate(`lost replies: ${tally}; counted ${await counted('key')} of ${charged} asked`)
  })

  it.each([0, 1, 10])('a reset after %i bytes of a reply costs at most what was asked', async (bytes) => {
    const all = await trial({ failureMode: 'open' })
    const { proxy, limiter, counted } = all
    for (const cost of [1, 3]) {
      proxy.resetMidReply(bytes)
      const key = `key-${cost}`
      const decision = await limiter.check(key, { cost })
      expect(decision.failure).toMatchObject({ mode: 'open', cause: 'unreachable', charged: 'unknown' })
      await recovered(all)
      // All or nothing, and once.
      expect([0, cost]).toContain(await counted(key))
    }
  })

  it('connections that are reset under load, again and again', async ({ annotate }) => {
    const all = await trial({ failureMode: 'closed' })
    const { proxy, limiter, counted, store } = all
    const callers = new Callers(30, () => limiter.check('key', { cost: 2 }))
    for (let resets = 0; resets < 5; resets++) {
      const { admitted } = callers.tally
      await until('some are admitted', () => callers.tally.admitted > admitted + 30)
      proxy.resetAll()
    }
    await recovered(all)
    const tally = await callers.stop()
    expect(tally.answered).toBe(tally.asked)
    const used = await counted('key')
    expect(used).toBeGreaterThanOrEqual(2 * tally.admitted)
    expect(used).toBeLessThanOrEqual(2 * (tally.admitted + tally.unknown))
    expect(tally.longestMs).toBeLessThan(patience(DEADLINE_MS))
    expect(store.stats().calls.pending).toBe(0)
    await annotate(
      `resets: ${tally}; counted ${used}, bound ${2 * tally.admitted} to ${2 * (tally.admitted + tally.unknown)}`,
    )
  })

  it('rejected connections: nothing is sent, nothing is charged', async ({ annotate }) => {
    const all = await trial({ failureMode: 'closed', breaker: PATIENT })
    const { proxy, limiter, counted } = all
    await proxy.refuse()
    proxy.resetAll()
    await until('the connection is known to be lost', async () => {
      return (await limiter.check('other')).failure?.charged === 'no'
    })
    const tally = new Tally()
    for (let call = 0; call < 10; call++) await tally.count(() => limiter.check('key'))
    expect(tally.origins).toEqual({ 'closed unreachable no': 10 })
    await proxy.passThrough()
    const backMs = await recovered(all)
    expect(await counted('key')).toBe(0)
    expect(backMs).toBeLessThan(4000)
    await annotate(`refused: ${tally}; back after ${backMs.toFixed(0)} ms; counted 0`)
  })
})

describe('a network that is slow', () => {
  it('late charges of denied callers are given back', async ({ annotate }) => {
    const all = await trial({ failureMode: 'closed', breaker: PATIENT })
    const { proxy, store, limiter, counted, witness } = all
    const before = store.stats().calls
    const seen = witness.events.length
    proxy.delay(DEADLINE_MS + 300)
    const tally = new Tally()
    for (let call = 0; call < 8; call++) {
      expect((await tally.count(() => limiter.check('key', { cost: 3 }))).allowed).toBe(false)
    }
    await until('all is given back', () => store.stats().calls.givenBack === before.givenBack + 8)
    proxy.delay(0)
    expect(await counted('key')).toBe(0)
    expect(store.stats().calls.lateAnswers).toBe(before.lateAnswers + 8)
    expect(witness.events.slice(seen).filter(({ type }) => type === 'late-answer')).toEqual(
      Array.from({ length: 8 }, () => ({ type: 'late-answer', allowed: true, givenBack: true })),
    )
    await annotate(`late answers: ${tally}; 8 given back, counted 0`)
  })

  it('late answers of callers that were let through stand', async () => {
    const { proxy, store, limiter, counted } = await trial({ failureMode: 'open', breaker: PATIENT })
    const before = store.stats().calls
    proxy.delay(DEADLINE_MS + 300)
    for (let call = 0; call < 4; call++) expect((await limiter.check('key')).failure?.cause).toBe('deadline')
    await until('all have come', () => store.stats().calls.lateAnswers === before.lateAnswers + 4)
    expect(store.stats().calls.givenBack).toBe(before.givenBack)
    expect(await counted('key')).toBe(4)
  })

  it('slower and slower: answers keep their deadline, and calls do not pile up', async ({ annotate }) => {
    const maxPending = 300
    const all = await trial({ failureMode: 'open', maxPending })
    const { proxy, store, limiter, counted } = all
    const tally = new Tally()
    const answers: Promise<unknown>[] = []
    let most = 0
    // Whether they are answered or not, checks keep coming: 20 every few milliseconds.
    for (let step = 0; step <= 20; step++) {
      proxy.delay(step * 25)
      for (let round = 0; round < 10; round++) {
        for (let call = 0; call < 20; call++) answers.push(tally.count(() => limiter.check(`key-${call}`)))
        most = Math.max(most, store.stats().calls.pending)
        await pause(5)
      }
    }
    await Promise.all(answers)
    expect(tally.answered).toBe(tally.asked)
    expect(tally.allowed).toBe(tally.asked)
    expect(most).toBeLessThanOrEqual(maxPending)
    expect(tally.quantileMs(0.99)).toBeLessThan(patience(DEADLINE_MS))
    proxy.delay(0)
    const backMs = await recovered(all)
    expect(store.stats().calls.pending).toBe(0)
    // Every charge is one that was asked for, and was counted once.
    let used = 0
    for (let call = 0; call < 20; call++) used += await counted(`key-${call}`)
    expect(used).toBeGreaterThanOrEqual(tally.admitted)
    expect(used).toBeLessThanOrEqual(tally.admitted + tally.unknown)
    await annotate(
      `0 to 500 ms: ${tally}; at most ${most} in flight; counted ${used}; back after ${backMs.toFixed(0)} ms`,
    )
  })

  it('checks beyond the most in flight are answered at once', async () => {
    const { proxy, store, limiter } = await trial({ failureMode: 'closed', maxPending: 10, breaker: PATIENT })
    await proxy.blackHole()
    const checks = Array.from({ length: 15 }, (_, call) => limiter.check(`key-${call}`))
    expect(store.stats().calls.pending).toBe(10)
    const charged = (await Promise.all(checks)).map(({ failure }) => failure?.charged)
    expect(charged.filter((word) => word === 'no')).toHaveLength(5)
    expect(charged.filter((word) => word === 'unknown')).toHaveLength(10)
  })
})
