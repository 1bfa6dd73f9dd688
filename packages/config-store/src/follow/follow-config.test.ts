import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ConfigEvent, ConfigFollower } from './config-follower.ts'
import {
  blockOf,
  enforced,
  FakeFeed,
  memberOf,
  overrideOf,
  RecordingTarget,
  removed,
  version,
} from './fake-feed.test.support.ts'
import { type FollowOptions, followConfig } from './follow-config.ts'

function scene(options: Partial<FollowOptions> = {}) {
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const feed = new FakeFeed()
  const target = new RecordingTarget()
  const events: ConfigEvent[] = []
  const observe = (event: ConfigEvent): void => void events.push(event)
  const follow = (more: Partial<FollowOptions> = {}): ConfigFollower => {
    const random = seededRandom(1)
    const follower = followConfig({ feed, target, clock, timers, random, observe, ...options, ...more })
    onTestFinished(() => follower.close())
    return follower
  }
  const typesOf = (): string[] => events.map(({ type }) => type)
  return { clock, timers, feed, target, events, follow, typesOf }
}

describe('loading', () => {
  it('takes over everything that is there', async () => {
    const { feed, target, timers, follow } = scene()
    feed.batchSize = 2
    feed.use(enforced(7))
    feed.commit(overrideOf('a', 1), overrideOf('b', 2), memberOf('a', 'gold'), blockOf('10.0.0.1', 99))
    feed.commit({ kind: 'incident', entry: { active: true } })
    const follower = follow()
    await follower.ready()
    expect(target.content()).toEqual(feed.content())
    expect(target.content()).toHaveLength(5)
    expect(target.versions).toEqual(enforced(7))
    await timers.advance(0)
    expect(follower.stats()).toMatchObject({
      source: 'database',
      enforcedVersion: 7,
      candidateVersion: undefined,
      refused: [],
      position: 6,
      lagMs: 0,
      failures: 0,
    })
  })

  it('is ready with an empty database', async () => {
    const { follow } = scene()
    const follower = follow()
    await follower.ready()
    expect(follower.stats()).toMatchObject({ source: 'database', enforcedVersion: undefined, position: 0 })
  })

  it('has rules from the end of the first load that has an enforced version', async () => {
    const { feed, timers, follow } = scene()
    const follower = follow()
    await follower.ready()
    expect(follower.hasRules).toBe(false)
    feed.batchSize = 1
    feed.commit(overrideOf('a', 1), overrideOf('b', 2))
    feed.use(enforced(1))
    await timers.advance(1000)
    expect(follower.hasRules).toBe(true)
    const loading: boolean[] = []
    const second = scene({ feed })
    feed.betweenBatches = () => void loading.push(other.hasRules)
    const other = second.follow()
    await other.ready()
    expect([loading.length > 0, new Set(loading), other.hasRules]).toEqual([true, new Set([false]), true])
  })

  it('has rules in force before it says that it is ready, and entries before it ends the reload', async () => {
    const { feed, target, follow } = scene()
    feed.use(enforced(1))
    feed.commit(overrideOf('a', 1))
    await follow().ready()
    expect(target.log).toEqual(['use 1/-', 'begin', 'apply 0', 'apply 1', 'end'])
  })

  it('finds what is changed while it loads', async () => {
    const { feed, target, timers, follow } = scene()
    feed.batchSize = 1
    feed.commit(overrideOf('a', 1), overrideOf('b', 2), overrideOf('c', 3))
    let times = 0
    feed.betweenBatches = () => {
      if (times++ === 1) feed.commit(overrideOf('a', 10), removed(overrideOf('b', 2)), overrideOf('d', 4))
    }
    await follow().ready()
    await timers.advance(0)
    expect(target.content()).toEqual([overrideOf('a', 10), overrideOf('c', 3), overrideOf('d', 4)])
  })

  it('opens the feed by a function, again and again until it can', async () => {
    const { feed, target, timers, follow, typesOf } = scene()
    feed.use(enforced(3))
    let tries = 0
    const open = (): Promise<FakeFeed> =>
      ++tries < 4 ? Promise.reject(new Error('connection refused')) : Promise.resolve(feed)
    const follower = follow({ feed: open })
    await timers.advance(2000)
    expect(tries).toBe(4)
    expect(target.versions).toEqual(enforced(3))
    expect(follower.stats()).toMatchObject({ source: 'database', failures: 3 })
    expect(typesOf()).toEqual(['unavailable', 'refreshed', 'recovered'])
    await timers.advance(20_000)
    expect(tries).toBe(4)
  })
})

describe('following', () => {
  it('looks soon after a hint', async () => {
    const { feed, target, timers, follow } = scene()
    const follower = follow()
    await timers.advance(1000)
    feed.commit(overrideOf('a', 1))
    feed.use(enforced(2))
    await timers.advance(50)
    expect(target.content()).toEqual([overrideOf('a', 1)])
    expect(follower.stats()).toMatchObject({ enforcedVersion: 2, notifications: 2, polls: 0, position: 2 })
  })

  it('looks again after a look that a hint came in the middle of', async () => {
    const { feed, target, timers, follow } = scene()
    follow()
    await timers.advance(1000)
    const { promise, resolve } = Promise.withResolvers<void>()
    const answer = feed.since.bind(feed)
    feed.since = async (position) => {
      const batch = await answer(position)
      await promise
      return batch
    }
    feed.hint()
    await timers.advance(50)
    feed.since = answer
    feed.use(enforced(2))
    await timers.advance(100)
    resolve()
    await timers.advance(0)
    expect(target.versions).toEqual(enforced(2))
  })

  it('turns a storm of hints into a look every 50 ms', async () => {
    const { feed, timers, follow } = scene()
    const follower = follow()
    await timers.advance(1000)
    const { since } = feed.calls
    for (let ms = 0; ms < 1000; ms++) {
      feed.commit(overrideOf(`u${ms}`, 1))
      await timers.advance(1)
    }
    expect(feed.calls.since - since).toBeLessThanOrEqual(21)
    await timers.advance(50)
    expect(follower.stats()).toMatchObject({ position: 1000, notifications: 1000 })
  })

  it('reads on while there is more', async () => {
    const { feed, target, timers, follow } = scene()
    const follower = follow()
    await timers.advance(1000)
    feed.batchSize = 10
    feed.commit(...Array.from({ length: 95 }, (_, index) => overrideOf(`u${index}`, index)))
    await timers.advance(50)
    expect(target.content()).toHaveLength(95)
    expect(follower.stats()).toMatchObject({ position: 95 })
  })

  it('finds changes without hints within the poll interval', async () => {
    const { feed, target, timers, follow } = scene({ pollMs: 3000 })
    feed.isMute = true
    const follower = follow()
    await timers.advance(10_000)
    feed.use(enforced(9))
    await timers.advance(3000)
    expect(target.versions).toEqual(enforced(9))
    const { polls } = follower.stats()
    expect(polls).toBeGreaterThanOrEqual(4)
    expect(polls).toBeLessThanOrEqual(6)
  })

  it('looks at once when hints may have been lost', async () => {
    const { feed, target, timers, follow, events } = scene()
    feed.isMute = true
    follow()
    await timers.advance(1000)
    feed.use(enforced(4))
    feed.lose(new Error('connection reset'))
    await timers.advance(50)
    expect(target.versions).toEqual(enforced(4))
    expect(events.filter(({ type }) => type === 'hints-lost')).toHaveLength(1)
  })

  it('tries to watch again when it could not, and then looks for what it missed', async () => {
    const { feed, target, timers, follow, events } = scene()
    const { watch } = feed
    feed.watch = () => Promise.reject(new Error('too many connections'))
    follow()
    await timers.advance(11_000)
    expect(events.filter(({ type }) => type === 'hints-lost')).toHaveLength(1)
    feed.watch = watch
    await timers.advance(5000)
    expect(feed.watchers).toBe(1)
    feed.use(enforced(5))
    await timers.advance(50)
    expect(target.versions).toEqual(enforced(5))
  })

  it('goes on without a notifier that throws', async () => {
    const { feed, target, timers, follow, events } = scene()
    feed.use(enforced(1))
    const watch = (): never => {
      throw new Error('broken')
    }
    const follower = follow({ notifiers: [{ watch, announce: () => Promise.resolve(false) }] })
    await timers.advance(20_000)
    expect([target.versions, follower.stats().failures]).toEqual([enforced(1), 0])
    expect(events.filter(({ type }) => type === 'hints-lost')).toMatchObject([{ error: { message: 'broken' } }])
  })

  it('looks at once for what it missed before it could listen', async () => {
    const { feed, target, timers, follow } = scene()
    const { promise, resolve } = Promise.withResolvers<void>()
    const watch = feed.watch.bind(feed)
    feed.watch = (changed, lost) => promise.then(() => watch(changed, lost))
    follow()
    await timers.advance(1000)
    feed.use(enforced(5))
    resolve()
    await timers.advance(50)
    expect(target.versions).toEqual(enforced(5))
  })

  it('listens to further notifiers', async () => {
    const { feed, target, timers, follow } = scene()
    feed.isMute = true
    const other = new FakeFeed()
    const notifier = { watch: other.watch.bind(other), announce: () => Promise.resolve(true) }
    const follower = follow({ notifiers: [notifier] })
    await timers.advance(1000)
    feed.use(enforced(6))
    other.hint()
    await timers.advance(50)
    expect(target.versions).toEqual(enforced(6))
    await follower.close()
    expect([feed.watchers, other.watchers]).toEqual([0, 0])
  })

  it('loads everything again when the feed cannot go on from where it was', async () => {
    const { feed, target, timers, follow, events } = scene()
    feed.commit(overrideOf('a', 1), overrideOf('b', 2))
    const follower = follow()
    await timers.advance(1000)
    feed.isMute = true
    feed.commit(removed(overrideOf('a', 1)), overrideOf('c', 3))
    feed.prune()
    await timers.advance(5000)
    expect(target.content()).toEqual([overrideOf('b', 2), overrideOf('c', 3)])
    expect(feed.calls.load).toBe(2)
    expect(follower.stats()).toMatchObject({ position: 4, failures: 0 })
    expect(events.at(-1)).toMatchObject({ type: 'refreshed', reloaded: true, changes: 2 })
  })

  it('loads everything again when the database was put back to an earlier state', async () => {
    const { feed, target, timers, follow } = scene()
    const earlier = new FakeFeed()
    earlier.commit(overrideOf('old', 1))
    feed.commit(overrideOf('a', 1), overrideOf('b', 2), overrideOf('c', 2))
    follow()
    await timers.advance(1000)
    feed.since = earlier.since.bind(earlier)
    feed.load = earlier.load.bind(earlier)
    await timers.advance(5000)
    expect(target.content()).toEqual([overrideOf('old', 1)])
  })

  it('keeps the enforced version when the database has lost all of them', async () => {
    const { feed, target, timers, follow } = scene()
    feed.use(enforced(3))
    feed.commit(overrideOf('a', 1))
    const follower = follow()
    await timers.advance(1000)
    const emptied = new FakeFeed()
    feed.since = emptied.since.bind(emptied)
    feed.load = emptied.load.bind(emptied)
    await timers.advance(5000)
    expect([target.versions, target.content(), follower.hasRules]).toEqual([enforced(3), [], true])
    expect(follower.stats()).toMatchObject({ enforcedVersion: 3, refused: [{ number: 0, stage: 'enforced' }] })
    emptied.use(enforced(1))
    await timers.advance(5000)
    expect(follower.stats()).toMatchObject({ enforcedVersion: 1, refused: [] })
  })

  it('fails the look instead of loading for ever when each load is too old at once', async () => {
    const { feed, timers, follow, events } = scene()
    feed.since = (position) =>
      Promise.resolve({ position, versions: undefined, changes: [], more: false, restart: true })
    follow()
    await timers.advance(0)
    expect(feed.calls.load).toBe(2)
    expect(events.find(({ type }) => type === 'unavailable')).toMatchObject({ error: { code: 'SLUICE_PROTOCOL' } })
  })
})

describe('refresh()', () => {
  it('resolves when all that was committed before the call is in force, also while a look is in progress', async () => {
    const { feed, target, timers, follow } = scene()
    feed.isMute = true
    const follower = follow()
    await timers.advance(1000)
    const { promise, resolve } = Promise.withResolvers<void>()
    const answer = feed.since.bind(feed)
    feed.since = async (position) => {
      const batch = await answer(position)
      await promise
      return batch
    }
    const first = follower.refresh()
    await timers.advance(0)
    // The look in flight has its answer already.
    feed.commit(overrideOf('late', 1))
    feed.since = answer
    const second = follower.refresh()
    resolve()
    await first
    expect(target.content()).toEqual([])
    // Without a timer, which would let a process end that waits for it.
    await second
    expect(target.content()).toEqual([overrideOf('late', 1)])
  })

  it('is one look for all who ask at the same time', async () => {
    const { feed, timers, follow } = scene()
    const follower = follow()
    await timers.advance(1000)
    const { since } = feed.calls
    await Promise.all(Array.from({ length: 100 }, () => follower.refresh()).concat(timers.advance(50)))
    expect(feed.calls.since - since).toBeLessThanOrEqual(2)
  })

  it('rejects with the error of the look, and with SLUICE_CLOSED after close()', async () => {
    const { feed, timers, follow } = scene()
    const follower = follow()
    await timers.advance(0)
    feed.isAway = true
    await expect(follower.refresh()).rejects.toMatchObject({ code: 'SLUICE_CONFIG_UNAVAILABLE' })
    await follower.close()
    await expect(follower.refresh()).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })
})

describe('a version that cannot be used', () => {
  it('is rejected whole, the old one stays, and entries are followed all the same', async () => {
    const { feed, target, timers, follow, events } = scene()
    target.unusable.add(2)
    feed.use(enforced(1))
    const follower = follow()
    await timers.advance(1000)
    feed.use(enforced(2))
    feed.commit(overrideOf('a', 1))
    await timers.advance(50)
    expect(target.versions).toEqual(enforced(1))
    expect(target.content()).toEqual([overrideOf('a', 1)])
    expect(follower.stats()).toMatchObject({
      enforcedVersion: 1,
      refused: [{ number: 2, stage: 'enforced', reason: 'version 2 is beyond me', problems: [] }],
      failures: 0,
      lagMs: 0,
    })
    expect(events.filter(({ type }) => type === 'refused')).toMatchObject([{ version: 2 }])
    feed.use(enforced(3))
    await timers.advance(50)
    expect(follower.stats()).toMatchObject({ enforcedVersion: 3, refused: [] })
  })

  it('does not hold up what is enforced when it is the candidate', async () => {
    const { feed, target, timers, follow } = scene()
    target.unusable.add(5)
    feed.use({ enforced: version(3), candidate: version(4) })
    const follower = follow()
    await timers.advance(1000)
    feed.use({ enforced: version(2), candidate: version(5) })
    await timers.advance(50)
    expect(follower.stats()).toMatchObject({
      enforcedVersion: 2,
      candidateVersion: undefined,
      refused: [{ number: 5, stage: 'candidate' }],
    })
  })

  it('leaves enforced version and candidate as they were when it is to be enforced', async () => {
    const { feed, target, timers, follow } = scene()
    target.unusable.add(5)
    feed.use({ enforced: version(3), candidate: version(4) })
    const follower = follow()
    await timers.advance(1000)
    feed.use({ enforced: version(5), candidate: version(6) })
    await timers.advance(50)
    expect(follower.stats()).toMatchObject({
      enforcedVersion: 3,
      candidateVersion: 4,
      refused: [{ number: 5, stage: 'enforced' }],
    })
  })

  it('is not ready when there is none to fall back to, and says which', async () => {
    const { feed, target, timers, follow } = scene({ waitMs: 3000 })
    target.unusable.add(1)
    feed.use(enforced(1))
    const ready = expect(follow().ready()).rejects.toMatchObject({
      code: 'SLUICE_CONFIG_UNAVAILABLE',
      message: expect.stringContaining('version 1 cannot be used'),
    })
    await timers.advance(3000)
    await ready
  })
})

describe('the database away', () => {
  it('later: goes on, tries again at growing distances up to the poll interval, and recovers by itself', async () => {
    const { feed, target, timers, clock, follow, events } = scene({ pollMs: 4000 })
    feed.use(enforced(1))
    const follower = follow()
    await timers.advance(1000)
    feed.isAway = true
    feed.use(enforced(2))
    const tries: number[] = []
    const { since } = FakeFeed.prototype
    feed.since = (position) => {
      tries.push(clock.nowMicros() / 1000)
      return since.call(feed, position)
    }
    await timers.advance(600_000)
    expect(target.versions).toEqual(enforced(1))
    const gaps = tries.slice(1).map((at, index) => at - tries[index]!)
    const plainMs = [200, 400, 800, 1600, 3200]
    for (const [index, plain] of plainMs.entries()) {
      expect(gaps[index]).toBeGreaterThanOrEqual(plain * 0.75)
      expect(gaps[index]).toBeLessThanOrEqual(Math.min(4000, plain * 1.25))
    }
    for (const gap of gaps.slice(plainMs.length)) expect(gap).toBeCloseTo(4000, 3)
    const { lagMs, failures, source, enforcedVersion } = follower.stats()
    expect(lagMs).toBe(600_000 + 1000 - 4000 - (follower.stats().lastRefreshAt! - (clock.nowMicros() / 1000 - 601_000)))
    expect({ failures, source, enforcedVersion }).toEqual({
      failures: tries.length,
      source: 'database',
      enforcedVersion: 1,
    })
    expect(events.filter(({ type }) => type === 'unavailable')).toHaveLength(1)
    feed.isAway = false
    await timers.advance(4000)
    expect(target.versions).toEqual(enforced(2))
    expect(follower.stats()).toMatchObject({ enforcedVersion: 2, lagMs: 0 })
    expect(events.filter(({ type }) => type === 'recovered')).toHaveLength(1)
    // The next time begins with short distances again.
    feed.isAway = true
    const before = tries.length
    await timers.advance(5000)
    expect(tries[before + 1]! - tries[before]!).toBeLessThanOrEqual(200)
  })

  it('is known as soon as hints are lost and a look fails, long before the next poll', async () => {
    const { feed, timers, clock, follow } = scene()
    feed.use(enforced(1))
    const follower = follow()
    await timers.advance(1000)
    expect(follower.stats().unavailableSince).toBeUndefined()
    feed.isAway = true
    feed.lose(new Error('the connection has ended'))
    await timers.advance(50)
    const atMs = clock.nowMicros() / 1000
    expect(follower.stats()).toMatchObject({ lagMs: 0, polls: 0, unavailableSince: expect.any(Number) })
    expect(atMs - follower.stats().unavailableSince!).toBeLessThanOrEqual(50)
    feed.isAway = false
    await timers.advance(5000)
    expect(follower.stats().unavailableSince).toBeUndefined()
  })

  it('hints do not make it be tried more often than every 200 ms', async () => {
    const { feed, timers, follow } = scene()
    follow()
    await timers.advance(1000)
    feed.isAway = true
    const { since } = feed.calls
    for (let ms = 0; ms < 2000; ms += 10) {
      feed.hint()
      await timers.advance(10)
    }
    expect(feed.calls.since - since).toBeLessThanOrEqual(11)
    expect(feed.calls.since - since).toBeGreaterThanOrEqual(5)
  })

  it('at the start and without a cache: ready() rejects after waitMs with the reason, and resolves later', async () => {
    const { feed, timers, follow } = scene({ waitMs: 2000 })
    feed.isAway = true
    const follower = follow()
    const ready = follower.ready()
    const outcome = expect(ready).rejects.toMatchObject({
      code: 'SLUICE_CONFIG_UNAVAILABLE',
      cause: { message: expect.stringContaining('the fake feed is unavailable') },
    })
    await timers.advance(1999)
    let isSettled = false
    ready.catch(() => {
      isSettled = true
    })
    await timers.advance(0)
    expect(isSettled).toBe(false)
    await timers.advance(1)
    await outcome
    expect(follower.stats()).toMatchObject({ source: 'none', enforcedVersion: undefined, lastRefreshAt: undefined })
    feed.isAway = false
    await timers.advance(5000)
    await follower.ready()
    expect(follower.stats()).toMatchObject({ source: 'database' })
  })

  it('in the middle of a load: what was in force stays, and the load is begun again', async () => {
    const { feed, target, timers, follow } = scene()
    feed.batchSize = 1
    feed.commit(overrideOf('a', 1), overrideOf('b', 2), overrideOf('c', 3))
    follow()
    await timers.advance(1000)
    feed.isMute = true
    feed.commit(removed(overrideOf('c', 3)), overrideOf('a', 10))
    feed.prune()
    feed.betweenBatches = () => {
      feed.isAway = true
    }
    await timers.advance(5000)
    expect(target.log.filter((step) => step === 'end')).toHaveLength(1)
    expect(target.content()).toContainEqual(overrideOf('b', 2))
    expect(target.content()).toContainEqual(overrideOf('c', 3))
    feed.betweenBatches = undefined
    feed.isAway = false
    await timers.advance(5000)
    expect(target.content()).toEqual([overrideOf('a', 10), overrideOf('b', 2)])
  })
})

describe('lag', () => {
  it('is 0 for as long as looks succeed as planned', async () => {
    const { timers, follow } = scene()
    const follower = follow()
    for (let second = 0; second < 60; second++) {
      await timers.advance(1000)
      expect(follower.stats().lagMs).toBe(0)
    }
  })

  it('rises while the database hangs', async () => {
    const { feed, timers, follow } = scene({ pollMs: 5000 })
    const follower = follow()
    await timers.advance(1000)
    const { promise, resolve } = Promise.withResolvers<void>()
    feed.gate = promise
    await timers.advance(60_000)
    expect(follower.stats().lagMs).toBeGreaterThan(55_000)
    feed.gate = undefined
    resolve()
    await timers.advance(0)
    expect(follower.stats()).toMatchObject({ lagMs: expect.any(Number), failures: 0 })
  })

  it('counts from the query of the database, not from its reply', async () => {
    const { feed, timers, follow } = scene({ pollMs: 1000 })
    const follower = follow()
    await timers.advance(100)
    const { promise, resolve } = Promise.withResolvers<void>()
    feed.gate = promise
    await timers.advance(30_000)
    feed.gate = undefined
    resolve()
    await timers.advance(0)
    expect(follower.stats().lagMs).toBeGreaterThan(27_000)
    await timers.advance(1000)
    expect(follower.stats().lagMs).toBe(0)
  })
})

describe('close()', () => {
  it('leaves no timer and no watcher behind', async () => {
    const { feed, timers, follow } = scene()
    const follower = follow()
    await timers.advance(1000)
    const ready = follower.ready()
    await follower.close()
    await follower.close()
    await ready
    expect([timers.pending, feed.watchers]).toEqual([0, 0])
  })

  it('hands nothing on any more, even in the middle of a load', async () => {
    const { feed, target, timers, follow } = scene()
    feed.batchSize = 1
    feed.commit(overrideOf('a', 1), overrideOf('b', 2), overrideOf('c', 3))
    const { promise, resolve } = Promise.withResolvers<void>()
    feed.betweenBatches = () => promise
    const follower = follow()
    await timers.advance(0)
    const ready = expect(follower.ready()).rejects.toMatchObject({ code: 'SLUICE_CONFIG_UNAVAILABLE' })
    const closed = follower.close()
    resolve()
    await closed
    await ready
    expect(target.content()).toEqual([])
    expect(target.log).not.toContain('end')
    expect(timers.pending).toBe(0)
  })
})

describe('what comes from outside', () => {
  it('an observer that throws changes nothing', async () => {
    const { feed, target, follow } = scene()
    feed.use(enforced(1))
    const observe = (): never => {
      throw new Error('full')
    }
    await follow({ observe }).ready()
    expect(target.versions).toEqual(enforced(1))
  })

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('a poll interval of %s is rejected', (pollMs) => {
    const { follow } = scene()
    expect(() => follow({ pollMs })).toThrow('SLUICE_INVALID_OPTION')
  })
})
