import type { Limiter } from '@sluice/core'
import { createLimiter, systemClock } from '@sluice/core'
import { type SentinelGroup, startSentinel } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serverCodeOf } from '../connection/connection.ts'
import { type RedisStore, redisStore } from '../redis-store.ts'
import { Caller } from './caller.test.support.ts'
import { figure, longWindowMs, pause, until } from './ground.test.support.ts'

const LIMIT = 4000
const DEADLINE_MS = 1000
const window = longWindowMs(systemClock.nowMicros() / 1000)

/** Codes that the server answered with, where a check had to be decided without it. */
const errorCodes = new Set<string>()

let group: SentinelGroup
let store: RedisStore
let limiter: Limiter<'async'>

beforeAll(async () => {
  group = await startSentinel()
  const urls = group.sentinels.map(({ url }) => url)
  store = redisStore(urls, {
    sentinel: { name: group.masterName },
    deadlineMs: DEADLINE_MS,
    failureMode: 'closed',
    observe: (event) => {
      if (event.type === 'failed') errorCodes.add(serverCodeOf((event.error as Error | undefined)?.cause) ?? '')
    },
  })
  limiter = createLimiter({ store, algorithm: 'fixed-window', limit: LIMIT, window })
  await store.ready()
})

afterAll(async () => {
  await store.close()
  await group.close()
})

/** Loads a key, takes its primary away, and waits until the limit is used up. */
async function failOver(key: string, takeAway: () => Promise<void>): Promise<string> {
  const callers = Array.from(
    { length: 4 },
    () => new Caller({ check: () => limiter.check(key), atOnce: 5, pauseMs: 2 }),
  )
  const admitted = (): number => callers.reduce((sum, { tally }) => sum + tally.allowed, 0)
  await until('a third of the limit is used', () => admitted() > LIMIT / 3)
  const beforeLag = admitted()
  await pause(100)
  await takeAway()
  const atDeath = admitted()
  await until('the limit is used up', () => callers.every(({ tally }) => tally.denied > 0))
  const tallies = await Promise.all(callers.map((caller) => caller.stop()))
  await until(
    'a new key is decided by the store',
    async () => (await limiter.check(`${key}-after`)).failure === undefined,
  )
  const bound = atDeath - beforeLag
  const outageMs = Math.max(...callers.map((caller) => caller.outageMs))
  const failed = tallies.reduce((sum, tally) => sum + tally.failed, 0)
  const longestMs = Math.max(...tallies.map((tally) => tally.longestMs))
  for (const tally of tallies) expect(tally.errors).toEqual([])
  expect(admitted()).toBeLessThanOrEqual(LIMIT + bound)
  expect(errorCodes).not.toContain('NOSCRIPT')
  expect(longestMs).toBeLessThanOrEqual(4 * DEADLINE_MS + 200)
  return (
    `nothing admitted for ${outageMs.toFixed(0)} ms; ${admitted()} of ${LIMIT} admitted, ` +
    `${Math.max(0, admitted() - LIMIT)} over, ` +
    `bound ${bound} (admitted from 100 ms before until it was away); ${failed} answered without the store, longest ` +
    `check ${longestMs.toFixed(0)} ms`
  )
}

describe('behind sentinels', () => {
  it('a fail-over under load is followed', async () => {
    figure(`fail-over ordered: ${await failOver('ordered', async () => void (await group.failover()))}`)
  })

  it('a primary that hangs, with its connections open, is replaced', async () => {
    const primary = await group.currentPrimary()
    figure(`primary hangs: ${await failOver('hanging', () => primary.pause())}`)
    primary.resume()
    await group.untilFailedOver(primary)
  })

  it('a primary that is killed under load is replaced', async () => {
    const primary = await group.currentPrimary()
    figure(`primary killed: ${await failOver('killed', () => primary.kill())}`)
  })
})
