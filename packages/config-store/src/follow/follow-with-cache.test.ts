import { readFile, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder, until } from '../waiting.test.support.ts'
import { openCache } from './cache-file-format.ts'
import type { ConfigEvent, ConfigFollower } from './config-follower.ts'
import {
  blockOf,
  enforced,
  FakeFeed,
  memberOf,
  overrideOf,
  RecordingTarget,
  removed,
} from './fake-feed.test.support.ts'
import { type FollowOptions, followConfig } from './follow-config.ts'

async function scene() {
  const path = join(await temporaryFolder(), 'config.cache')
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const feed = new FakeFeed()
  const events: ConfigEvent[] = []
  let seed = 1
  /** A process, which may be the next one on the same machine. */
  const start = (more: Partial<FollowOptions> = {}): { follower: ConfigFollower; target: RecordingTarget } => {
    const target = new RecordingTarget()
    const observe = (event: ConfigEvent): void => void events.push(event)
    const random = seededRandom(seed++)
    const follower = followConfig({ feed, target, clock, timers, random, observe, cache: { path }, ...more })
    onTestFinished(() => follower.close())
    return { follower, target: (more.target as RecordingTarget | undefined) ?? target }
  }
  /** Lets timers and files go on until something holds. */
  const settle = (what: string, holds: () => boolean | Promise<boolean>): Promise<number> =>
    until(what, async () => {
      await timers.advance(100)
      return await holds()
    })
  return { path, clock, timers, feed, events, start, settle }
}

const ENTRIES = [overrideOf('a', 1), overrideOf('b', 2), memberOf('a', 'gold'), blockOf('10.0.0.1', 9e12)]

describe('the database is unavailable at the start', () => {
  it('the last good configuration on disk is used, and the database when it is back, without a restart', async () => {
    const { feed, events, start, timers, settle } = await scene()
    feed.use(enforced(3))
    feed.commit(...ENTRIES, { kind: 'incident', entry: { active: true } })
    const first = start()
    await first.follower.ready()
    await first.follower.close()

    feed.isAway = true
    await timers.advance(60_000)
    events.length = 0
    const { follower, target } = start()
    await follower.ready()
    expect(target.content()).toEqual(feed.content())
    expect(target.versions).toEqual(enforced(3))
    expect(follower.stats()).toMatchObject({ source: 'disk', enforcedVersion: 3, position: undefined, refreshes: 0 })
    expect(follower.stats().lagMs).toBeGreaterThanOrEqual(55_000)
    expect(events.map(({ type }) => type)).toEqual(['unavailable', 'refreshed'])

    feed.isAway = false
    feed.use(enforced(4))
    feed.commit(removed(overrideOf('a', 1)))
    await settle('the database is followed', () => events.some(({ type }) => type === 'recovered'))
    expect(target.content()).toEqual(feed.content())
    expect(follower.stats()).toMatchObject({ source: 'database', enforcedVersion: 4, lagMs: 0 })
  })

  it('and silent: the file on disk is used after a second, and the database when it answers', async () => {
    const { feed, start, timers } = await scene()
    feed.use(enforced(3))
    const first = start()
    await first.follower.ready()
    await first.follower.close()

    const { promise, resolve } = Promise.withResolvers<void>()
    feed.gate = promise
    const { follower, target } = start()
    await timers.advance(999)
    expect(follower.stats().source).toBe('none')
    await timers.advance(1)
    await follower.ready()
    expect(follower.stats()).toMatchObject({ source: 'disk', enforcedVersion: 3 })
    feed.use(enforced(4))
    feed.gate = undefined
    resolve()
    await until('the database is followed', () => follower.stats().source === 'database')
    expect(target.versions).toEqual(enforced(4))
  })

  it('and not open yet: what is on disk does not mix with what the database sends at that moment', async () => {
    const { feed, start, timers } = await scene()
    feed.commit(...Array.from({ length: 3000 }, (_, index) => overrideOf(`old${index}`, index)))
    const first = start()
    await first.follower.ready()
    await first.follower.close()
    feed.commit(...feed.content().map(removed), overrideOf('new', 1))
    const { promise, resolve } = Promise.withResolvers<void>()
    feed.gate = promise
    const { follower, target } = start()
    await timers.advance(1000)
    // The file is being read.
    feed.gate = undefined
    resolve()
    await until('the database is followed', () => follower.stats().source === 'database')
    expect(target.content()).toEqual([overrideOf('new', 1)])
    const steps = target.log.filter((step) => step === 'begin' || step === 'end')
    expect(steps).toEqual(['begin', 'end', 'begin', 'end'])
  })

  it('and the file is torn: it is reported and nothing of it is used', async () => {
    const { path, feed, events, start, timers } = await scene()
    feed.use(enforced(3))
    feed.commit(...ENTRIES)
    const first = start()
    await first.follower.ready()
    await first.follower.close()
    const { length } = await readFile(path)
    await truncate(path, length - 100)
    feed.isAway = true
    events.length = 0
    const { follower, target } = start({ waitMs: 1500 })
    const ready = expect(follower.ready()).rejects.toMatchObject({ code: 'SLUICE_CONFIG_UNAVAILABLE' })
    await until('the file is refused', () => events.some(({ type }) => type === 'cache-refused'))
    await timers.advance(1500)
    await ready
    expect(events.find(({ type }) => type === 'cache-refused')).toMatchObject({
      reason: expect.stringContaining('torn'),
    })
    expect([target.log, follower.stats().source]).toEqual([[], 'none'])
  })

  it('and the file holds a version that this program cannot use: nothing of it is used', async () => {
    const { feed, start, timers, events } = await scene()
    feed.use(enforced(3))
    feed.commit(...ENTRIES)
    const first = start()
    await first.follower.ready()
    await first.follower.close()
    feed.isAway = true
    const target = new RecordingTarget()
    target.unusable.add(3)
    const { follower } = start({ waitMs: 1500, target })
    const ready = expect(follower.ready()).rejects.toMatchObject({ message: expect.stringContaining('version 3') })
    await until('it is refused', () => events.some(({ type }) => type === 'refused'))
    await timers.advance(1500)
    await ready
    expect(target.content()).toEqual([])
    expect(follower.stats()).toMatchObject({ source: 'none', refused: [{ number: 3, stage: 'enforced' }] })
  })
})

describe('the file on disk', () => {
  it('follows the database', async () => {
    const { path, feed, start, settle } = await scene()
    feed.use(enforced(1))
    const { follower } = start()
    await follower.ready()
    feed.commit(overrideOf('a', 1))
    feed.use(enforced(2))
    await settle('it is written', async () => (await readFile(path, 'utf8')).includes('"a"'))
    await follower.close()
    const reading = await openCache(path)
    if (reading.state !== 'whole') throw new Error(reading.state)
    expect(reading.cache).toMatchObject({ position: 3, versions: { enforced: { number: 2 } } })
    await reading.cache.close()
  })

  it('keeps the last version that could be used, and a restart uses it while the database has another', async () => {
    const { feed, start, timers } = await scene()
    feed.use(enforced(1))
    const target = new RecordingTarget()
    target.unusable.add(2)
    const first = start({ target })
    await first.follower.ready()
    feed.use(enforced(2))
    feed.commit(overrideOf('a', 1))
    await timers.advance(100)
    await first.follower.close()

    const restarted = new RecordingTarget()
    restarted.unusable.add(2)
    const { follower } = start({ target: restarted })
    await follower.ready()
    expect(follower.stats()).toMatchObject({
      source: 'database',
      enforcedVersion: 1,
      refused: [{ number: 2, stage: 'enforced' }],
    })
    expect(restarted.content()).toEqual([overrideOf('a', 1)])
  })

  it('that was lost is rewritten from the database, though not more than every 10 minutes', async () => {
    const { path, feed, start, settle, events, timers } = await scene()
    feed.use(enforced(1))
    feed.commit(...ENTRIES)
    const { follower, target } = start()
    await follower.ready()
    await rm(path)
    feed.commit(overrideOf('z', 1))
    await settle('the loss is noticed', () => events.some(({ type }) => type === 'cache-failed'))
    await timers.advance(300_000)
    expect(feed.calls.load).toBe(1)
    await timers.advance(310_000)
    await settle('it is there again', async () => (await openCacheState(path)) === 'whole')
    expect(feed.calls.load).toBe(2)
    expect(target.content()).toEqual(feed.content())
  })
})

async function openCacheState(path: string): Promise<string> {
  const reading = await openCache(path)
  if (reading.state === 'whole') await reading.cache.close()
  return reading.state
}
