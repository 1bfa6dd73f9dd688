import type { Alert, LiveSample } from '@sluice/contract'
import type { RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { Scene } from '../../observability/observability.test.support.ts'
import { createScene, createSceneNode } from '../../observability/observability.test.support.ts'
import type { EventFeed } from './event-feed.ts'
import { StreamLimit } from './event-feed.ts'
import { figuresOf } from './feed-readers.ts'
import type { TimedFigures } from './live-feed.ts'
import { liveFeed } from './live-feed.ts'

const RULES: RuleSet = {
  rules: [{ resource: '/data', dimension: 'user', limit: 2, window: '1h' }],
  regions: { EU: 1 },
}

interface FeedScene extends Scene {
  readonly feed: EventFeed<TimedFigures>
  readonly limit: StreamLimit
  /** Makes the next reports fail. */
  fails: boolean
}

const FIRING = { id: 'a1', state: 'firing' } as Alert

function feedScene(mostStreams = 3): FeedScene {
  const scene = createScene({ ruleSet: RULES })
  const { threads } = createSceneNode(scene, { alerts: [FIRING] })
  const figures = () => (feedOf.fails ? Promise.reject(new Error('no thread answers')) : figuresOf(threads, undefined))
  const { clock, sleep, log } = scene
  const limit = new StreamLimit(mostStreams)
  const feed = liveFeed({ figures, nowMs: () => clock.nowMicros() / 1000, sleep, log: log.logger, limit })
  const feedOf: FeedScene = Object.assign(scene, { feed, limit, fails: false })
  return feedOf
}

class Client {
  text = ''
  isEnded = false
  /** What a write says: false when the client does not keep up. */
  keepsUp = true
  mayRead = true
  #stop: (() => void) | undefined

  open(feed: EventFeed<TimedFigures>, lastEventId?: string): boolean {
    const answer = feed.open({ lastEventId, mayRead: () => this.mayRead })
    if (answer === undefined) return false
    const end = (): void => {
      this.isEnded = true
      this.#stop?.()
    }
    this.#stop = answer.stream((text) => {
      this.text += text
      return this.keepsUp
    }, end)
    if (this.isEnded) this.#stop()
    return true
  }

  leave(): void {
    this.#stop?.()
  }

  samples(): readonly LiveSample[] {
    return [...this.text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json!) as LiveSample)
  }

  ids(): readonly string[] {
    return [...this.text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id!)
  }
}

describe('the live feed', () => {
  it('tells once a second what came since the last time', async () => {
    const { feed, engine, timers, clock } = feedScene()
    const start = clock.nowMicros() / 1000
    engine.check({ resource: '/data', user: 'earlier' })
    const client = new Client()
    client.open(feed)
    expect(client.text).toBe('retry: 2000\n: connected\n\n')
    await timers.advance(0)
    for (let call = 0; call < 5; call++) engine.check({ resource: '/data', user: 'ann', region: 'EU' })
    await timers.advance(1000)
    await timers.advance(1000)
    const [first, second] = client.samples()
    expect(first).toMatchObject({
      at: start,
      spanMs: 1000,
      checks: 5,
      denials: 3,
      withoutStore: 0,
      storeErrors: 0,
      resources: [{ name: '/data', checks: 5, denials: 3 }],
      regions: [{ name: 'EU', checks: 5, denials: 3 }],
      version: 0,
      configAgeMs: 0,
      firingAlerts: 1,
      breaker: 'closed',
      top: [{ dimension: 'user', entries: [{ entity: 'ann', denials: 3, error: 0 }] }],
    })
    expect(second).toMatchObject({ at: start + 1000, checks: 0, denials: 0, resources: [] })
    expect(client.samples()).toHaveLength(2)
    expect(client.text).toContain(`id: ${start + 1000}\nevent: sample\ndata: {`)
    client.leave()
  })

  it('does nothing without readers', async () => {
    const { feed, limit, timers } = feedScene()
    expect(timers.pending).toBe(0)
    const client = new Client()
    client.open(feed)
    await timers.advance(1000)
    expect(timers.pending).toBe(1)
    expect(limit.open).toBe(1)
    client.leave()
    client.leave()
    expect(timers.pending).toBe(0)
    expect(limit.open).toBe(0)
    await timers.advance(5000)
    expect(client.samples()).toHaveLength(1)
    const next = new Client()
    next.open(feed)
    await timers.advance(1000)
    expect(next.samples()).toHaveLength(1)
    next.leave()
  })

  it('says how the store and the configuration are', async () => {
    const scene = feedScene()
    const { feed, timers, instrument } = scene
    const client = new Client()
    client.open(feed)
    await timers.advance(0)
    instrument.observeStore({ type: 'breaker', state: 'open' })
    instrument.observeStore({ type: 'asked', micros: 2000, outcome: 'failed' })
    instrument.observeStore({ type: 'failed', cause: 'deadline', charged: 'unknown', error: undefined })
    scene.config = { ...scene.config, enforcedVersion: 12, lagMs: 400 }
    await timers.advance(1000)
    instrument.observeStore({ type: 'breaker', state: 'half-open' })
    await timers.advance(1000)
    expect(client.samples()).toMatchObject([
      { breaker: 'open', version: 12, configAgeMs: 400, storeErrors: 1 },
      { breaker: 'half-open', storeErrors: 0 },
    ])
    client.leave()
  })

  it('sends a heartbeat when there is nothing to tell, and tells all of it later', async () => {
    const scene = feedScene()
    const { feed, timers, engine, log } = scene
    const client = new Client()
    client.open(feed)
    await timers.advance(0)
    scene.fails = true
    engine.check({ resource: '/data', user: 'ann' })
    await timers.advance(1000)
    expect(client.text.endsWith(': heartbeat\n\n')).toBe(true)
    scene.fails = false
    await timers.advance(1000)
    expect(client.samples()).toMatchObject([{ checks: 1, spanMs: 2000 }])
    expect(log.entries()).toMatchObject([{ level: 'warn', message: 'could not collect the metrics of the live feed' }])
    client.leave()
  })

  it('begins with a heartbeat when nothing is known at first', async () => {
    const scene = feedScene()
    const { feed, timers } = scene
    scene.fails = true
    const client = new Client()
    client.open(feed)
    await timers.advance(0)
    scene.fails = false
    await timers.advance(2000)
    expect(client.text).toContain(': heartbeat\n\nid: ')
    expect(client.samples()).toHaveLength(1)
    client.leave()
  })

  it('lets go of a reader that is behind twice in a row, and of no other', async () => {
    const { feed, limit, timers } = feedScene()
    const [slow, quick, hiccup] = [new Client(), new Client(), new Client()]
    for (const client of [slow, quick, hiccup]) client.open(feed)
    slow.keepsUp = false
    hiccup.keepsUp = false
    await timers.advance(1000)
    hiccup.keepsUp = true
    await timers.advance(1000)
    hiccup.keepsUp = false
    await timers.advance(1000)
    expect([slow.isEnded, quick.isEnded, hiccup.isEnded]).toEqual([true, false, false])
    expect(slow.samples()).toHaveLength(2)
    expect(quick.samples()).toHaveLength(3)
    expect(limit.open).toBe(2)
    quick.leave()
    hiccup.leave()
  })

  it('bounds the number of streams, and has room again when one ends', () => {
    const { feed } = feedScene(2)
    const clients = [new Client(), new Client(), new Client()]
    expect(clients.map((client) => client.open(feed))).toEqual([true, true, false])
    clients[0]!.leave()
    expect(clients[2]!.open(feed)).toBe(true)
    for (const client of clients) client.leave()
  })

  it('ends a stream that was promised when there was room, and is begun when there is none', () => {
    const { feed, limit } = feedScene(1)
    const promised = [1, 2].map(() => feed.open({ lastEventId: undefined, mayRead: () => true })!)
    const ended: number[] = []
    const stops = promised.map((answer, number) =>
      answer.stream(
        () => true,
        () => void ended.push(number),
      ),
    )
    expect(ended).toEqual([1])
    for (const stop of stops) stop()
    expect(limit.open).toBe(0)
  })

  it('gives a reader that comes back what it missed of the last minute', async () => {
    const { feed, timers } = feedScene()
    const [first, other] = [new Client(), new Client()]
    first.open(feed)
    other.open(feed)
    await timers.advance(70_000)
    const ids = other.ids()
    expect(ids).toHaveLength(70)
    first.leave()
    const back = new Client()
    back.open(feed, ids[67])
    expect(back.ids()).toEqual(ids.slice(68))
    const long = new Client()
    long.open(feed, ids[0])
    expect(long.ids()).toEqual(ids.slice(10))
    for (const client of [other, back, long]) client.leave()
  })

  it.each(['', 'abc', '-1', '1e9', '9'.repeat(40), '{}', '\u0000'])('tolerates %j as the last event', async (last) => {
    const { feed, timers } = feedScene()
    const [first, back] = [new Client(), new Client()]
    first.open(feed)
    await timers.advance(3000)
    expect(back.open(feed, last)).toBe(true)
    expect(back.samples()).toEqual([])
    await timers.advance(1000)
    expect(back.samples()).toHaveLength(1)
    first.leave()
    back.leave()
  })

  it('does not let go of a reader for what it missed being much', async () => {
    const { feed, timers } = feedScene()
    const other = new Client()
    other.open(feed)
    await timers.advance(60_000)
    const back = new Client()
    back.keepsUp = false
    back.open(feed, '0')
    expect(back.samples()).toHaveLength(60)
    await timers.advance(1000)
    expect(back.isEnded).toBe(false)
    await timers.advance(1000)
    expect(back.isEnded).toBe(true)
    other.leave()
    back.leave()
  })

  it('ends a stream whose reader may not read any more, before the next event', async () => {
    const { feed, timers } = feedScene()
    const client = new Client()
    client.open(feed)
    await timers.advance(1000)
    client.mayRead = false
    await timers.advance(1000)
    expect(client.isEnded).toBe(true)
    expect(client.samples()).toHaveLength(1)
    expect(timers.pending).toBe(0)
  })
})
