import type { RuleSet } from '@sluice/core/policy'
import { FakeClock } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { trafficPoint } from '../history/traffic-totals.ts'
import type { Scene, SceneNode } from '../observability.test.support.ts'
import { createScene, createSceneNode, MemoryRollups } from '../observability.test.support.ts'
import { shownCallers } from '../top-callers.ts'
import type { ClusterFigures } from './cluster-view.ts'
import type { ReportExchange } from './report-exchange.ts'
import { databaseExchange, packed, redisExchange, unpacked } from './report-exchange.ts'

const RULES: RuleSet = { rules: [{ resource: '/data', dimension: 'user', limit: 2, window: '1h' }] }

/** A Redis of two commands. */
function fakeRedis(clock: FakeClock) {
  const values = new Map<string, { text: string; endsAt: number }>()
  const nowMs = () => clock.nowMicros() / 1000
  const get = (key: string): string | undefined => {
    const value = values.get(key)
    return value !== undefined && value.endsAt > nowMs() ? value.text : undefined
  }
  const set = (key: string, text: string, keptMs: number) => values.set(key, { text, endsAt: nowMs() + keptMs })
  return {
    values,
    run: (script: string, key: string, [first = '', second = '']: readonly string[]): Promise<unknown> => {
      if (script.startsWith('return')) return Promise.resolve(get(key) ?? null)
      if (script.startsWith('redis')) return Promise.resolve(set(key, first, Number(second)))
      const lines = (get(key) ?? '').split('\n').filter((line) => {
        const [at = '', node] = line.split(' ')
        return node !== undefined && node !== first && Number(at) + Number(second) > nowMs()
      })
      if (first !== '') set(key, [...lines, `${nowMs()} ${first}`].join('\n'), Number(second))
      return Promise.resolve([...lines, ...(first === '' ? [] : [`${nowMs()} ${first}`])].join('\n'))
    },
  }
}

interface TwoNodes {
  readonly one: Scene & SceneNode
  readonly two: Scene & SceneNode
  readonly clock: FakeClock
  advance(milliseconds: number): Promise<void>
}

function twoNodes(exchangeOf: (clock: FakeClock) => ReportExchange): TwoNodes {
  const clock = new FakeClock()
  const exchange = exchangeOf(clock)
  const [one, two] = (['one', 'two'] as const).map((name) => {
    const scene = createScene({ ruleSet: RULES, clock })
    return { ...scene, ...createSceneNode(scene, { id: `id-${name}`, name, exchange }) }
  }) as unknown as [TwoNodes['one'], TwoNodes['two']]
  const advance = async (milliseconds: number): Promise<void> => {
    for (let passed = 0; passed < milliseconds; passed += 500) {
      await one.timers.advance(500)
      // The clock is the same: the timers of the other are due now.
      await two.timers.advance(0)
    }
  }
  return { one, two, clock, advance }
}

async function figuresAt({ threads }: SceneNode, node?: string): Promise<ClusterFigures> {
  return (await threads.callMain('cluster.figures', node))!
}

function countsIn({ totals }: ClusterFigures): readonly number[] {
  const { checks, denials } = trafficPoint(totals, { at: 0, spanMs: 1 })
  return [checks, denials]
}

function checkTimes({ engine }: Scene, times: number, user: string): void {
  for (let time = 0; time < times; time++) engine.check({ resource: '/data', user })
}

describe.each([
  ['Redis', (clock: FakeClock) => redisExchange(fakeRedis(clock), 'sluice'), 5000],
  ['a database', (clock: FakeClock) => databaseExchange(new MemoryRollups(), () => clock.nowMicros() / 1000), 10_000],
] as const)('nodes that share %s', (_name, exchangeOf, lostAfterMs) => {
  it('have the sum of all figures, and those of one', async () => {
    const { one, two, advance } = twoNodes(exchangeOf)
    one.cluster.start()
    two.cluster.start()
    await advance(2000)
    // Baselines: what was before does not count.
    await figuresAt(one)
    checkTimes(one, 5, 'ann')
    checkTimes(two, 7, 'ann')
    checkTimes(two, 4, 'bob')
    await advance(4000)
    const all = await figuresAt(one)
    expect(countsIn(all)).toEqual([16, 10])
    expect(all.nodes).toBe(2)
    expect(shownCallers(all.top, { limit: 10 })).toEqual([
      {
        dimension: 'user',
        entries: [
          { entity: 'ann', denials: 8, error: 0 },
          { entity: 'bob', denials: 2, error: 0 },
        ],
      },
    ])
    expect(countsIn(await figuresAt(one, 'two'))).toEqual([11, 7])
    expect(countsIn(await figuresAt(one, 'id-two'))).toEqual([11, 7])
    expect(countsIn(await figuresAt(one, 'self'))).toEqual([5, 3])
    expect(await one.threads.callMain('cluster.figures', 'unknown')).toBeUndefined()
    await Promise.all([one.cluster.stop(), two.cluster.stop()])
  })

  it(`lose a node that is silent for ${lostAfterMs} ms, and forget it after a minute`, async () => {
    const { one, two, advance } = twoNodes(exchangeOf)
    one.cluster.start()
    two.cluster.start()
    await advance(4000)
    const listed = async () =>
      (await one.threads.callMain('cluster.nodes')).nodes.map(({ name, isLost }) => [name, isLost])
    expect(await listed()).toEqual([
      ['one', false],
      ['two', false],
    ])
    // Killed: it says nothing any more.
    for (let passed = 0; passed < lostAfterMs; passed += 500) await one.timers.advance(500)
    await listed()
    for (let passed = 0; passed < 2500; passed += 500) await one.timers.advance(500)
    expect(await listed()).toEqual([
      ['one', false],
      ['two', true],
    ])
    expect((await figuresAt(one)).nodes).toBe(1)
    for (let passed = 0; passed < 60_000; passed += 500) await one.timers.advance(500)
    expect(await listed()).toEqual([['one', false]])
    await one.cluster.stop()
  })

  it('forget a node that stops at once, and totals never go down', async () => {
    const { one, two, advance } = twoNodes(exchangeOf)
    one.cluster.start()
    two.cluster.start()
    await advance(2000)
    await figuresAt(one)
    checkTimes(two, 3, 'ann')
    await advance(4000)
    expect(countsIn(await figuresAt(one))).toEqual([3, 1])
    await two.cluster.stop()
    await one.timers.advance(2000)
    const after = await figuresAt(one)
    expect([after.nodes, ...countsIn(after)]).toEqual([1, 3, 1])
    await one.cluster.stop()
  })

  it('share decisions, without API keys', async () => {
    const { one, two, advance } = twoNodes(exchangeOf)
    one.cluster.start()
    two.cluster.start()
    await advance(2000)
    two.engine.check({ resource: '/data', user: 'ann', apiKey: 'secret-key' })
    await advance(14_000)
    const [record] = await one.threads.callMain('cluster.decisions', { most: 10 })
    expect(record).toMatchObject({ node: 'id-two', allowed: true, request: { user: 'ann' }, hidden: ['apiKey'] })
    expect(JSON.stringify(record)).not.toContain('secret-key')
    expect(await one.threads.callMain('cluster.decisions', { most: 10, node: 'self' })).toEqual([])
    expect(await one.threads.callMain('cluster.decisions', { most: 10, node: 'two' })).toHaveLength(1)
    await Promise.all([one.cluster.stop(), two.cluster.stop()])
  })
})

describe('a node', () => {
  it('goes on alone while nothing can be shared, and says so', async () => {
    const failing: ReportExchange = {
      everyMs: { report: 1000, decisions: 5000, signals: 5000 },
      lostAfterMs: 5000,
      publish: () => Promise.reject(new Error('no connection')),
      readAll: () => Promise.reject(new Error('no connection')),
      remove: () => Promise.reject(new Error('no connection')),
    }
    const { one, advance } = twoNodes(() => failing)
    one.cluster.start()
    await advance(3000)
    checkTimes(one, 3, 'ann')
    expect(countsIn(await figuresAt(one))).toEqual([3, 1])
    const { isShared, problem, nodes } = await one.threads.callMain('cluster.nodes')
    expect([isShared, nodes.length]).toEqual([true, 1])
    expect(problem).toContain('no connection')
    expect(one.log.entries().filter(({ level }) => level === 'warn')).toHaveLength(1)
    await one.cluster.stop()
  })

  it('publishes a bounded report that shrinks', () => {
    const text = JSON.stringify(
      Array.from({ length: 1000 }, (_, number) => ({ resource: `/api/v1/r${number}`, count: number })),
    )
    expect(unpacked(packed(text))).toBe(text)
    expect(packed(text).length).toBeLessThan(text.length / 3)
    expect(unpacked(packed('short'))).toBe('short')
  })
})
