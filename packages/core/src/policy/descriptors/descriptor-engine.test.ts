import { deferredStore, FakeClock } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../errors.ts'
import type { Limit } from '../../rule/limit.ts'
import { fallbackStore } from '../../store/fallback/fallback-store.ts'
import { memoryStore } from '../../store/memory/memory-store.ts'
import type { Batch, Mode, Receipt, Settlement, Store } from '../../store/store.ts'
import type { DescriptorLimit, DescriptorNode, DescriptorUnit } from '../rule-set/descriptor-domain.ts'
import type { DescriptorDecision } from './descriptor-decision.ts'
import type { DescriptorOptions } from './descriptor-engine.ts'
import { decideDescriptors } from './descriptor-engine.ts'
import type { DescriptorRequest, RequestDescriptor } from './descriptor-request.ts'
import type { DescriptorEntry } from './descriptor-rule.ts'
import { DescriptorTree } from './descriptor-tree.ts'

const LARGEST = 4_294_967_295

const perMinute = (requestsPerUnit: number, more: DescriptorLimit = {}): DescriptorLimit => ({
  unit: 'minute',
  requestsPerUnit,
  ...more,
})

/** `a=1 b=2` as a descriptor. */
function of(text: string, more: Omit<RequestDescriptor, 'entries'> = {}): RequestDescriptor {
  return { entries: text.split(' ').map((part) => entryOf(part)), ...more }
}

function entryOf(part: string): DescriptorEntry {
  const [key = '', value = ''] = part.split('=')
  return { key, value }
}

describe('limits of any window and algorithm', () => {
  it('count in windows that are no unit, and announce no unit', async () => {
    const { decide, clock } = sceneOf('sync', { key: 'a', limit: { window: '30s', requestsPerUnit: 2, name: 'half' } })
    const codes = [await decide([of('a=1')]), await decide([of('a=1')]), await decide([of('a=1')])]
    expect(codes.map(({ code }) => code)).toEqual(['ok', 'ok', 'over'])
    expect(codes[2]!.statuses[0]!.limit).toEqual({ unit: undefined, requestsPerUnit: 2, name: 'half' })
    expect(codes[2]!.statuses[0]!.resetAfterSeconds).toBeLessThanOrEqual(30)
    clock.advance(30_000)
    expect((await decide([of('a=1')])).code).toBe('ok')
  })

  it('a window as long as a unit is that unit, with the same counters', async () => {
    const store = memoryStore({ clock: new FakeClock() })
    const scenes = [perMinute(2), { window: '1m', requestsPerUnit: 2 }].map((limit) =>
      sceneOn(store, new FakeClock(), [{ key: 'a', limit }]),
    )
    const statuses = [await scenes[0]!.decide([of('a=1')]), await scenes[1]!.decide([of('a=1')])]
    expect(statuses.map(({ statuses: [status] }) => [status!.limit?.unit, status!.remaining])).toEqual([
      ['minute', 1],
      ['minute', 0],
    ])
  })

  it.each(['gcra', 'sliding-window-counter', 'sliding-window-log'] as const)(
    'count by another algorithm, and give units back: %s',
    async (algorithm) => {
      const { decide, clock } = sceneOf('sync', { key: 'a', limit: perMinute(3, { algorithm }) })
      const take = async (more = {}): Promise<DescriptorDecision> => await decide([of('a=1', more)])
      const codes = [await take(), await take(), await take(), await take()].map(({ code }) => code)
      expect(codes).toEqual(['ok', 'ok', 'ok', 'over'])
      await take({ isNegativeHits: true })
      expect((await take()).code).toBe('ok')
      const denied = await take()
      const [status] = denied.statuses
      expect([denied.code, status!.limit]).toEqual(['over', { unit: 'minute', requestsPerUnit: 3, name: undefined }])
      clock.advance(status!.resetAfterSeconds * 1000)
      expect((await take()).code).toBe('ok')
    },
  )

  it.each([
    [{ requestsPerUnit: 1 }, 'one of unit and window'],
    [{ unit: 'minute', window: '30s', requestsPerUnit: 1 }, 'one of unit and window'],
    [{ window: '0s', requestsPerUnit: 1 }, 'a duration above 0'],
  ] as const)('cannot be used without exactly one usable window: %j', (limit, message) => {
    expect(() => sceneOf('sync', { key: 'a', limit })).toThrow(message)
  })
})

interface Scene {
  readonly clock: FakeClock
  readonly store: Store
  decide(descriptors: readonly RequestDescriptor[], more?: Partial<DescriptorRequest>): Promise<DescriptorDecision>
  /** The same, for what has happened already. */
  record(descriptors: readonly RequestDescriptor[]): Promise<DescriptorDecision>
  /** What is left of the counters of these descriptors. */
  remaining(...texts: string[]): Promise<(number | null)[]>
}

function sceneOf(mode: Mode, ...descriptors: DescriptorNode[]): Scene {
  const clock = new FakeClock()
  const store: Store = mode === 'sync' ? memoryStore({ clock }) : deferredStore(memoryStore({ clock }))
  return sceneOn(store, clock, descriptors)
}

function sceneOn(store: Store, clock: FakeClock, descriptors: readonly DescriptorNode[]): Scene {
  const tree = new DescriptorTree([{ domain: 'shop', descriptors }])
  const run = async (request: DescriptorRequest, options?: DescriptorOptions): Promise<DescriptorDecision> =>
    await decideDescriptors({ store, tree }, request, options)
  return {
    clock,
    store,
    decide: (list, more) => run({ domain: 'shop', descriptors: list, ...more }),
    record: (list) => run({ domain: 'shop', descriptors: list }, { charge: 'always' }),
    remaining: async (...texts) => {
      const { statuses } = await run({ domain: 'shop', descriptors: texts.map((text) => of(text, { hitsAddend: 0 })) })
      return statuses.map(({ remaining }) => remaining)
    },
  }
}

const codes = ({ code, statuses }: DescriptorDecision): string[] => [code, ...statuses.map((status) => status.code)]

const user: DescriptorNode = { key: 'user', limit: perMinute(3) }

describe.each<Mode>(['sync', 'async'])('a request by descriptors, on a store that is %s', (mode) => {
  const scene = (...descriptors: DescriptorNode[]): Scene => sceneOf(mode, ...descriptors)

  it('tells code, limit, what is left and when the window ends', async () => {
    const { decide, clock } = scene({ key: 'user', limit: perMinute(2, { name: 'users' }) })
    clock.advance(1500)
    const first = await decide([of('user=u1')])
    expect(first).toMatchObject({ code: 'ok', failure: undefined })
    expect(first.statuses[0]).toMatchObject({
      code: 'ok',
      isOver: false,
      matched: 'limit',
      limit: { unit: 'minute', requestsPerUnit: 2, name: 'users' },
      remaining: 1,
      resetAfterSeconds: 59,
    })
    clock.advance(58_499)
    expect((await decide([of('user=u1')])).statuses[0]).toMatchObject({
      code: 'ok',
      remaining: 0,
      resetAfterSeconds: 1,
    })
    const third = await decide([of('user=u1')])
    expect(codes(third)).toEqual(['over', 'over'])
    expect(third.statuses[0]).toMatchObject({ isOver: true, remaining: 0, resetAfterSeconds: 1 })
    // A new window begins at the full minute, wherever the first call came.
    clock.advance(1)
    expect((await decide([of('user=u1')])).statuses[0]).toMatchObject({
      code: 'ok',
      remaining: 1,
      resetAfterSeconds: 60,
    })
  })

  it('gives units back, not below nothing used, and says that there is room', async () => {
    const { decide, remaining } = scene(user, { key: 'quiet', shadow: true, limit: perMinute(2) })
    const back = (text: string, more: object = {}): RequestDescriptor => of(text, { isNegativeHits: true, ...more })
    await decide([of('user=u1', { hitsAddend: 3 }), of('quiet', { hitsAddend: 2 })])
    expect(codes(await decide([of('user=u1')]))).toEqual(['over', 'over'])
    const given = await decide([back('user=u1', { hitsAddend: 2 }), back('quiet')])
    expect(codes(given)).toEqual(['ok', 'ok', 'ok'])
    expect(given.statuses.map((status) => status.remaining)).toEqual([2, 1])
    expect((await decide([back('user=u1')], { hitsAddend: 100 })).statuses[0]?.remaining).toBe(3)
    expect(await remaining('user=u1', 'quiet')).toEqual([3, 1])
    // Nothing to give back: no rule, no units, no use.
    expect(codes(await decide([back('unknown=x'), back('user=u2'), back('user=u1', { hitsAddend: 0 })]))).toEqual(
      Array(4).fill('ok'),
    )
    expect(await remaining('user=u2')).toEqual([3])
  })

  it('gives units back whatever is decided about the others', async () => {
    const { decide, remaining } = scene(user, { key: 'ip', limit: perMinute(1) })
    await decide([of('user=u1', { hitsAddend: 3 }), of('ip=i1')])
    const mixed = await decide([of('user=u1', { isNegativeHits: true }), of('ip=i1')])
    expect(codes(mixed)).toEqual(['over', 'ok', 'over'])
    expect(await remaining('user=u1', 'ip=i1')).toEqual([1, 0])
  })

  it('is not saved from a denial for quotas by one that gives back', async () => {
    const { decide } = scene(
      { key: 'a', quota: true, limit: perMinute(1) },
      { key: 'b', quota: true, limit: perMinute(1) },
    )
    await decide([of('a'), of('b')])
    expect(codes(await decide([of('a'), of('b', { isNegativeHits: true })]))).toEqual(['over', 'over', 'ok'])
  })

  it.each<[DescriptorUnit, number]>([
    ['second', 1],
    ['minute', 60],
    ['hour', 3600],
    ['day', 86_400],
    ['week', 604_800],
    ['month', 2_592_000],
    ['year', 31_536_000],
  ])('cuts windows of a %s at multiples of their length since 1970', async (unit, seconds) => {
    const { decide, clock } = scene({ key: 'user', limit: { unit, requestsPerUnit: 1 } })
    clock.advance(123_456_789_000)
    const now = clock.nowMicros() / 1_000_000
    expect((await decide([of('user=u1')])).statuses[0]?.resetAfterSeconds).toBe(seconds - (now % seconds))
    clock.advance((seconds - (now % seconds)) * 1000 - 1)
    expect((await decide([of('user=u1')])).code).toBe('over')
    clock.advance(1)
    expect((await decide([of('user=u1')])).code).toBe('ok')
  })

  it('counts each value of a bare key, and of a pattern, on its own', async () => {
    const { decide } = scene({ key: 'user', limit: perMinute(1) }, { key: 'file', value: 'f*', limit: perMinute(1) })
    for (const text of ['user=u1', 'user=u2', 'file=f1', 'file=f2']) expect((await decide([of(text)])).code).toBe('ok')
    for (const text of ['user=u1', 'user=u2', 'file=f1', 'file=f2'])
      expect((await decide([of(text)])).code).toBe('over')
  })

  it('counts all values of a pattern together on request', async () => {
    const { decide } = scene({ key: 'file', value: 'f*', shareThreshold: true, limit: perMinute(2) })
    expect((await decide([of('file=f1')])).code).toBe('ok')
    expect((await decide([of('file=f2')])).code).toBe('ok')
    expect((await decide([of('file=f3')])).code).toBe('over')
  })

  it('limits nothing where nothing is found', async () => {
    const { decide } = scene(user)
    const decision = await decide([of('other=1'), of('user=u1 more=1')])
    expect(codes(decision)).toEqual(['ok', 'ok', 'ok'])
    expect(decision.least).toBeUndefined()
    for (const status of decision.statuses) {
      expect(status).toMatchObject({ matched: 'none', limit: undefined, remaining: 0, resetAfterSeconds: 0 })
    }
  })

  it('answers for an unlimited descriptor with the largest number and no limit', async () => {
    const { decide } = scene({ key: 'user', metadata: { tier: 'staff' }, limit: { unlimited: true } })
    const [status] = (await decide([of('user=u1')])).statuses
    expect(status).toMatchObject({ code: 'ok', matched: 'unlimited', limit: undefined, remaining: LARGEST })
    expect(status?.rule?.metadata).toEqual({ tier: 'staff' })
  })

  it('denies all where the limit is 0, also for a request of 0 units', async () => {
    const { decide } = scene({ key: 'user', limit: perMinute(0) })
    const decision = await decide([of('user=u1')])
    expect(decision.statuses[0]).toMatchObject({ code: 'over', remaining: 0, limit: { requestsPerUnit: 0 } })
    expect((await decide([of('user=u1', { hitsAddend: 0 })])).code).toBe('over')
  })

  it('lets an unknown domain through, also when it brings a limit of its own', async () => {
    const { decide } = scene(user)
    const limit = { unit: 'minute', requestsPerUnit: 0 } as const
    const decision = await decide([of('user=u1'), of('user=u1', { limit })], { domain: 'other' })
    expect(codes(decision)).toEqual(['ok', 'ok', 'ok'])
    expect(decision.statuses.map(({ matched }) => matched)).toEqual(['unknown-domain', 'unknown-domain'])
  })

  describe('units', () => {
    it('are 1 when the request says nothing or 0, and a descriptor has its own', async () => {
      const { decide, remaining } = scene({ key: 'user', limit: perMinute(100) })
      await decide([of('user=a')])
      await decide([of('user=b')], { hitsAddend: 0 })
      await decide([of('user=c')], { hitsAddend: 7 })
      await decide([of('user=d', { hitsAddend: 9 }), of('user=e')], { hitsAddend: 7 })
      expect(await remaining('user=a', 'user=b', 'user=c', 'user=d', 'user=e')).toEqual([99, 99, 93, 91, 93])
    })

    it('of 0 for a descriptor only ask: nothing is taken, and over is said when nothing is left', async () => {
      const { decide } = scene(user)
      const check = of('user=u1', { hitsAddend: 0 })
      for (let call = 0; call < 5; call++) {
        expect((await decide([check], { hitsAddend: 5 })).statuses[0]).toMatchObject({ code: 'ok', remaining: 3 })
      }
      await decide([of('user=u1')], { hitsAddend: 2 })
      expect((await decide([check])).statuses[0]).toMatchObject({ code: 'ok', remaining: 1 })
      await decide([of('user=u1')])
      expect((await decide([check])).statuses[0]).toMatchObject({ code: 'over', remaining: 0 })
    })

    it('that do not fit are denied and cost nothing, and the decision has what is left', async () => {
      const { decide } = scene(user)
      expect((await decide([of('user=u1')], { hitsAddend: 4 })).statuses[0]).toMatchObject({
        code: 'over',
        remaining: 3,
      })
      expect((await decide([of('user=u1')], { hitsAddend: 3 })).statuses[0]).toMatchObject({ code: 'ok', remaining: 0 })
    })

    it('of a request that is denied by a descriptor of 0 units are given back', async () => {
      const { decide, remaining } = scene(user, { key: 'day', limit: { unit: 'day', requestsPerUnit: 1 } })
      await decide([of('day=d')])
      const decision = await decide([of('user=u1'), of('day=d', { hitsAddend: 0 })])
      expect(codes(decision)).toEqual(['over', 'ok', 'over'])
      expect(decision.statuses[0]?.remaining).toBe(3)
      expect(await remaining('user=u1')).toEqual([3])
    })
  })

  describe('several limits', () => {
    const ip: DescriptorNode = { key: 'ip', limit: perMinute(1) }

    it('are charged all or none', async () => {
      const { decide, remaining } = scene(user, ip)
      expect(codes(await decide([of('user=u1'), of('ip=i1')]))).toEqual(['ok', 'ok', 'ok'])
      const second = await decide([of('user=u1'), of('ip=i1')])
      expect(codes(second)).toEqual(['over', 'ok', 'over'])
      expect(second.statuses.map((status) => status.remaining)).toEqual([2, 0])
      expect(await remaining('user=u1', 'ip=i1')).toEqual([2, 0])
    })

    it('on one counter add up, and each has its status', async () => {
      const { decide, remaining } = scene(user)
      const twice = [of('user=u1'), of('user=u2'), of('user=u1')]
      const first = await decide(twice)
      expect(first.statuses.map((status) => status.remaining)).toEqual([1, 2, 1])
      expect(codes(await decide(twice))).toEqual(['over', 'over', 'ok', 'over'])
      expect(await remaining('user=u1', 'user=u2')).toEqual([1, 2])
    })

    it('of different size on one counter hold by the smallest', async () => {
      const { decide } = scene(user)
      const own = of('user=u1', { limit: { unit: 'minute', requestsPerUnit: 100 } })
      expect(codes(await decide([own, of('user=u1')], { hitsAddend: 2 }))).toEqual(['over', 'over', 'over'])
      expect(codes(await decide([own], { hitsAddend: 50 }))).toEqual(['ok', 'ok'])
    })

    it('on one counter, of which one is in quota mode, are decided apart', async () => {
      const { decide } = scene({ key: 'user', quota: true, limit: perMinute(3) })
      const own = of('user=u1', { limit: { unit: 'minute', requestsPerUnit: 1 }, hitsAddend: 2 })
      const decision = await decide([own, of('user=u1')])
      expect(codes(decision)).toEqual(['over', 'over', 'ok'])
      expect(decision.statuses.map(({ isOver }) => isOver)).toEqual([true, false])
    })

    it('show the first with the least left for headers', async () => {
      const { decide } = scene(user, ip, { key: 'route', limit: { unlimited: true } })
      const decision = await decide([of('route=r'), of('user=u1'), of('ip=i1'), of('ip=i2'), of('other=1')])
      expect(decision.least).toBe(decision.statuses[2])
      expect((await decide([of('route=r')])).least).toBeUndefined()
    })
  })

  describe('a limit that comes with the request', () => {
    const limit = { unit: 'minute', requestsPerUnit: 1 } as const

    it('holds instead of the tree, its shadow and its quota', async () => {
      const { decide } = scene({ key: 'user', shadow: true, quota: true, limit: perMinute(50) })
      const first = await decide([of('user=u1', { limit })])
      expect(first.statuses[0]?.limit).toEqual({ unit: 'minute', requestsPerUnit: 1, name: undefined })
      expect(codes(await decide([of('user=u1', { limit })]))).toEqual(['over', 'over'])
    })

    it('needs no rule in the tree', async () => {
      const { decide } = scene()
      expect((await decide([of('any=1 thing=2', { limit })])).code).toBe('ok')
      expect((await decide([of('any=1 thing=2', { limit })])).code).toBe('over')
      expect((await decide([of('any=1 thing=3', { limit })])).code).toBe('ok')
    })

    it('goes on with what was used under the tree, when the unit is the same', async () => {
      const { decide } = scene(user)
      await decide([of('user=u1')])
      expect((await decide([of('user=u1', { limit })])).code).toBe('over')
      expect((await decide([of('user=u1', { limit: { ...limit, unit: 'hour' } })])).code).toBe('ok')
    })
  })

  describe('replacement', () => {
    const orders: DescriptorNode = { key: 'orders', limit: perMinute(1, { name: 'orders' }) }

    it('drops the limit of that name before anything is counted', async () => {
      const { decide, remaining } = scene(orders, { key: 'vip', limit: perMinute(5, { replaces: ['orders'] }) })
      const both = [of('orders=1'), of('vip=1')]
      for (let call = 0; call < 5; call++) expect((await decide(both)).code).toBe('ok')
      const last = await decide(both)
      expect(codes(last)).toEqual(['over', 'ok', 'over'])
      expect(last.statuses[0]).toMatchObject({ matched: 'replaced', limit: undefined, remaining: 0 })
      expect(await remaining('orders=1')).toEqual([1])
    })

    it('works from an unlimited limit and from one in shadow, but does not drop what does not limit', async () => {
      const { decide } = scene(
        orders,
        { key: 'free', limit: { unlimited: true, name: 'free', replaces: ['orders'] } },
        { key: 'trial', shadow: true, limit: perMinute(5, { replaces: ['orders', 'free'] }) },
      )
      const matched = async (...texts: string[]): Promise<string[]> =>
        (await decide(texts.map((text) => of(text)))).statuses.map((status) => status.matched)
      expect(await matched('orders=1', 'free=1')).toEqual(['replaced', 'unlimited'])
      expect(await matched('orders=1', 'free=1', 'trial=1')).toEqual(['replaced', 'unlimited', 'limit'])
    })

    it('has no effect in a request without the other limit', async () => {
      const { decide } = scene(orders, { key: 'vip', limit: perMinute(5, { replaces: ['orders'] }) })
      expect((await decide([of('orders=1')])).code).toBe('ok')
      expect((await decide([of('orders=1')])).code).toBe('over')
    })
  })

  describe('shadow', () => {
    const trial: DescriptorNode = { key: 'trial', shadow: true, limit: perMinute(1) }

    it('is evaluated and measured, and answered with ok', async () => {
      const { decide } = scene(trial)
      expect((await decide([of('trial=1')])).statuses[0]).toMatchObject({ code: 'ok', isOver: false, remaining: 0 })
      const second = await decide([of('trial=1')])
      expect(second.code).toBe('ok')
      expect(second.statuses[0]).toMatchObject({
        code: 'ok',
        isOver: true,
        remaining: 0,
        limit: { requestsPerUnit: 1 },
      })
    })

    it('neither stops the others from being charged, nor is it counted when they deny', async () => {
      const { decide, remaining } = scene(trial, user)
      for (let call = 0; call < 3; call++) expect((await decide([of('trial=1'), of('user=u1')])).code).toBe('ok')
      expect(await remaining('trial=1', 'user=u1')).toEqual([0, 0])
      expect(codes(await decide([of('trial=2'), of('user=u1')]))).toEqual(['over', 'ok', 'over'])
      expect(await remaining('trial=2')).toEqual([1])
    })
  })

  describe('quota mode', () => {
    const backends: DescriptorNode[] = [
      { key: 'backend', value: 'one', quota: true, limit: perMinute(1) },
      { key: 'backend', value: 'two', quota: true, limit: perMinute(2) },
    ]
    const both = [of('backend=one'), of('backend=two')]

    it('denies only when every quota is over, and reports each of them before', async () => {
      const { decide } = scene(...backends)
      const seen: unknown[] = []
      for (let call = 0; call < 3; call++) {
        const decision = await decide(both)
        seen.push([codes(decision), decision.statuses.map(({ isOver }) => isOver)])
      }
      expect(seen).toEqual([
        [
          ['ok', 'ok', 'ok'],
          [false, false],
        ],
        [
          ['ok', 'over', 'ok'],
          [true, false],
        ],
        [
          ['over', 'over', 'over'],
          [true, true],
        ],
      ])
    })

    it('denies by any other limit that is over, and then takes nothing', async () => {
      const { decide, remaining } = scene(...backends, { key: 'user', limit: perMinute(0) })
      const decision = await decide([...both, of('user=u1')])
      expect(codes(decision)).toEqual(['over', 'ok', 'ok', 'over'])
      expect(decision.statuses.map((status) => status.remaining)).toEqual([1, 2, 0])
      expect(await remaining('backend=one', 'backend=two')).toEqual([1, 2])
    })

    it('that denies takes nothing from other limits', async () => {
      const { decide, remaining } = scene(...backends, user)
      await decide([of('backend=one'), of('user=u1')])
      expect(codes(await decide([of('backend=one'), of('user=u1')]))).toEqual(['over', 'over', 'ok'])
      expect(await remaining('user=u1')).toEqual([2])
    })

    it('has room as long as one of them does not limit or is in shadow', async () => {
      const { decide } = scene(
        { key: 'full', quota: true, limit: perMinute(0) },
        { key: 'free', quota: true, limit: { unlimited: true } },
        { key: 'trial', quota: true, shadow: true, limit: perMinute(0) },
      )
      expect((await decide([of('full=1')])).code).toBe('over')
      expect((await decide([of('full=1'), of('free=1')])).code).toBe('ok')
      expect((await decide([of('full=1'), of('trial=1')])).code).toBe('ok')
      expect((await decide([of('trial=1')])).code).toBe('ok')
    })

    it('hands back the metadata of those that have room, merged', async () => {
      const { decide } = scene(
        { key: 'a', quota: true, metadata: { pools: { a: 1 }, name: 'a' }, limit: perMinute(1) },
        { key: 'b', quota: true, metadata: { pools: { b: 2 }, name: 'b', rest: [0] }, limit: perMinute(2) },
        { key: 'plain', limit: perMinute(9) },
      )
      const metadata = async (...texts: string[]): Promise<unknown> =>
        (await decide(texts.map((text) => of(text)))).metadata
      expect(await metadata('a', 'plain', 'b')).toEqual({ pools: { a: 1, b: 2 }, name: 'a', rest: [0] })
      expect(await metadata('a', 'b')).toEqual({ pools: { b: 2 }, name: 'b', rest: [0] })
      expect(await metadata('a', 'b')).toBeUndefined()
      expect(await metadata('plain')).toBeUndefined()
    })

    it('hands back the metadata of the node', async () => {
      const { decide } = scene({ key: 'backend', quota: true, metadata: { pool: 'blue' }, limit: perMinute(1) })
      expect((await decide([of('backend=one')])).statuses[0]?.rule?.metadata).toEqual({ pool: 'blue' })
    })
  })

  describe('what has happened already', () => {
    it('is charged whatever is left, so that a later check is denied', async () => {
      const { decide, record, remaining } = scene({ key: 'tokens', limit: perMinute(1000) })
      const check = of('tokens=u1', { hitsAddend: 0 })
      expect((await decide([check])).code).toBe('ok')
      expect((await record([of('tokens=u1', { hitsAddend: 990 })])).statuses[0]).toMatchObject({
        remaining: 10,
        code: 'ok',
      })
      expect((await decide([check])).code).toBe('ok')
      // An answer that took more than was left.
      expect((await record([of('tokens=u1', { hitsAddend: 500 })])).statuses[0]).toMatchObject({
        remaining: 0,
        code: 'over',
      })
      expect(await remaining('tokens=u1')).toEqual([0])
      expect((await decide([check])).code).toBe('over')
    })

    it('is charged to each limit on its own', async () => {
      const { record, remaining } = scene(
        user,
        { key: 'ip', limit: perMinute(10) },
        { key: 'none', limit: perMinute(0) },
      )
      const five = [of('user=u1', { hitsAddend: 5 }), of('ip=i1', { hitsAddend: 5 }), of('none=1')]
      expect(codes(await record(five))).toEqual(['over', 'over', 'ok', 'over'])
      expect(await remaining('user=u1', 'ip=i1')).toEqual([0, 5])
    })

    it('is measured apart where it is in shadow', async () => {
      const { record } = scene({ key: 'user', shadow: true, limit: perMinute(1) })
      const own = of('user=u1', { limit: { unit: 'minute', requestsPerUnit: 5 } })
      expect(codes(await record([own, of('user=u1')]))).toEqual(['ok', 'ok', 'ok'])
    })

    it('adds up on one counter, and may be a question only', async () => {
      const { record, remaining } = scene({ key: 'user', limit: perMinute(10) })
      await record([
        of('user=u1', { hitsAddend: 4 }),
        of('user=u1', { hitsAddend: 4 }),
        of('user=u2', { hitsAddend: 0 }),
      ])
      expect(await remaining('user=u1', 'user=u2')).toEqual([2, 10])
    })
  })

  describe('a limit with drain', () => {
    const tokens: DescriptorNode = { key: 'tokens', limit: perMinute(1000, { drain: true }) }
    const spent = (hitsAddend: number, more: object = {}): RequestDescriptor => of('tokens=u1', { hitsAddend, ...more })

    it('takes what is left for more hits than that, so that the next check is denied', async () => {
      const { decide, remaining, clock } = scene(tokens)
      expect((await decide([spent(900)])).statuses[0]).toMatchObject({ code: 'ok', remaining: 100 })
      expect((await decide([spent(0)])).code).toBe('ok')
      const more = await decide([spent(300)])
      expect(codes(more)).toEqual(['over', 'over'])
      expect(more.statuses[0]).toMatchObject({ isOver: true, denies: true, remaining: 0, resetAfterSeconds: 60 })
      expect((await decide([spent(0)])).code).toBe('over')
      expect((await decide([spent(1)])).code).toBe('over')
      clock.advance(60_000)
      expect(await remaining('tokens=u1')).toEqual([1000])
      // Also in one go, from a counter that nobody has used.
      expect((await decide([of('tokens=u2', { hitsAddend: 5000 })])).code).toBe('over')
      expect(await remaining('tokens=u2')).toEqual([0])
    })

    it('keeps what it took when another limit denies, which itself takes nothing', async () => {
      const { decide, remaining } = scene(tokens, user, { key: 'none', limit: perMinute(0) })
      expect(codes(await decide([spent(10), of('user=u1'), of('none=1')]))).toEqual(['over', 'ok', 'ok', 'over'])
      expect(await remaining('tokens=u1', 'user=u1')).toEqual([990, 3])
    })

    it('denies for others, which then take nothing', async () => {
      const { decide, remaining } = scene(tokens, user)
      expect(codes(await decide([spent(2000), of('user=u1')]))).toEqual(['over', 'over', 'ok'])
      expect(await remaining('tokens=u1', 'user=u1')).toEqual([0, 3])
    })

    it('denies nothing in shadow, and in quota mode when all quotas are over', async () => {
      const { decide, remaining } = scene(
        { key: 'tried', shadow: true, limit: perMinute(5, { drain: true }) },
        { key: 'pool', quota: true, limit: perMinute(5, { drain: true }) },
      )
      expect(codes(await decide([of('tried=1', { hitsAddend: 9 })]))).toEqual(['ok', 'ok'])
      const pools = [of('pool=1', { hitsAddend: 9 }), of('pool=2')]
      expect(codes(await decide(pools))).toEqual(['ok', 'over', 'ok'])
      expect(await remaining('tried=1', 'pool=1', 'pool=2')).toEqual([0, 0, 4])
    })

    it('gives back what it took, and adds up', async () => {
      const { decide, remaining } = scene(tokens)
      await decide([spent(600), spent(600)])
      expect(await remaining('tokens=u1')).toEqual([0])
      expect(codes(await decide([spent(200, { isNegativeHits: true })]))).toEqual(['ok', 'ok'])
      expect(await remaining('tokens=u1')).toEqual([200])
    })
  })

  it('decides long values like others', async () => {
    const { decide } = scene({ key: 'user', limit: perMinute(1) })
    const value = 'x'.repeat(50_000)
    expect((await decide([{ entries: [{ key: 'user', value }] }])).code).toBe('ok')
    expect((await decide([{ entries: [{ key: 'user', value: `${value}y` }] }])).code).toBe('ok')
    expect((await decide([{ entries: [{ key: 'user', value }] }])).code).toBe('over')
  })

  it('goes on with what was used when the tree changes', async () => {
    const clock = new FakeClock()
    const store = mode === 'sync' ? memoryStore({ clock }) : deferredStore(memoryStore({ clock }))
    const before = sceneOn(store, clock, [{ key: 'user', limit: perMinute(2) }])
    await before.decide([of('user=u1')])
    await before.decide([of('user=u1')])
    const after = sceneOn(store, clock, [user, { key: 'user', value: 'u1', limit: perMinute(3) }])
    expect((await after.decide([of('user=u1')])).statuses[0]).toMatchObject({ code: 'ok', remaining: 0 })
    expect((await after.decide([of('user=u1')])).code).toBe('over')
  })
})

describe('a request that cannot be decided', () => {
  const store = memoryStore({ clock: new FakeClock() })
  const tree = new DescriptorTree([{ domain: 'shop', descriptors: [user] }])

  it.each<[string, unknown, string]>([
    ['an empty domain', { domain: '', descriptors: [of('a=1')] }, 'SLUICE_INVALID_OPTION'],
    ['no domain', { descriptors: [of('a=1')] }, 'SLUICE_INVALID_OPTION'],
    ['no descriptors', { domain: 'shop', descriptors: [] }, 'SLUICE_INVALID_OPTION'],
    ['too many', { domain: 'shop', descriptors: Array(1001).fill(of('a=1')) }, 'SLUICE_INVALID_OPTION'],
    ['no entries', { domain: 'shop', descriptors: [{}] }, 'SLUICE_INVALID_OPTION'],
    ['no value', { domain: 'shop', descriptors: [{ entries: [{ key: 'a' }] }] }, 'SLUICE_INVALID_OPTION'],
    ['units below 0', { domain: 'shop', descriptors: [of('a=1', { hitsAddend: -1 })] }, 'SLUICE_INVALID_COST'],
    ['half a unit', { domain: 'shop', hitsAddend: 0.5, descriptors: [of('a=1')] }, 'SLUICE_INVALID_COST'],
  ])('%s', (_mistake, request, code) => {
    expect(() => decideDescriptors({ store, tree }, request as DescriptorRequest)).toThrow(
      expect.objectContaining({ code }),
    )
  })

  it('an unknown way to charge', () => {
    const options = { charge: 'never' } as unknown as DescriptorOptions
    const request = { domain: 'shop', descriptors: [of('user=1')] }
    expect(() => decideDescriptors({ store, tree }, request, options)).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_OPTION', received: 'never' }),
    )
  })
})

/** A store that records its calls, and fails on request. */
class FaultyStore implements Store<'async'> {
  readonly mode = 'async'
  readonly inner: Store<'async'>
  failsToDecide: (batch: Batch) => boolean = () => false
  failsToSettle = false
  readonly asked: { readonly charge: boolean; readonly limits: number[] }[] = []
  settled = 0

  constructor(inner: Store<'async'>) {
    this.inner = inner
  }

  async decide(batch: Batch): Promise<void> {
    this.asked.push({ charge: batch.charge, limits: batch.items.map(({ limit }) => limit.limit) })
    if (this.failsToDecide(batch)) throw new SluiceError('SLUICE_STORE_UNAVAILABLE', { problem: 'as told' })
    await this.inner.decide(batch)
  }

  async settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement> {
    this.settled++
    if (this.failsToSettle) throw new SluiceError('SLUICE_STORE_UNAVAILABLE', { problem: 'as told' })
    return await this.inner.settle(receipt, actuals)
  }

  async block(rule: string, key: string, micros: number): Promise<void> {
    await this.inner.block(rule, key, micros)
  }

  async reset(limits: readonly Limit[], key: string): Promise<void> {
    await this.inner.reset(limits, key)
  }

  async close(): Promise<void> {
    await this.inner.close()
  }
}

function faultyScene(...descriptors: DescriptorNode[]): Scene & { readonly store: FaultyStore } {
  const clock = new FakeClock()
  const store = new FaultyStore(deferredStore(memoryStore({ clock })))
  return { ...sceneOn(store, clock, descriptors), store }
}

describe('a store', () => {
  const nodes: DescriptorNode[] = [
    { key: 'a', limit: perMinute(1) },
    { key: 'b', limit: perMinute(2) },
    { key: 'shadow', shadow: true, limit: perMinute(3) },
    { key: 'quota', quota: true, limit: perMinute(4) },
  ]

  it('is called once for all limits that are enforced, also when it denies', async () => {
    const { decide, store } = faultyScene(...nodes)
    for (let call = 0; call < 3; call++) await decide([of('a=1'), of('b=1')])
    const together = { charge: true, limits: [1, 2] }
    expect(store.asked).toEqual([together, together, together])
    expect(store.settled).toBe(0)
  })

  it('is called separately for the others, at the same time', async () => {
    const { decide, store } = faultyScene(...nodes)
    await decide([of('a=1'), of('shadow=1'), of('b=1'), of('quota=1'), of('quota=2')])
    expect(store.asked.map(({ limits }) => limits)).toEqual([[1, 2], [3], [4], [4]])
    expect(store.settled).toBe(0)
  })

  it('is not charged by those that only ask, nor asked where nothing is to be counted', async () => {
    const { decide, store } = faultyScene(...nodes)
    await decide([of('a=1', { hitsAddend: 0 }), of('b=1', { hitsAddend: 0 })])
    await decide([of('other=1')])
    expect(store.asked).toEqual([{ charge: false, limits: [1, 2] }])
  })
})

describe('a store that cannot be asked', () => {
  const asks = (limit: number) => (batch: Batch) => batch.items.some((item) => item.limit.limit === limit)

  it('makes the request fail', async () => {
    const { decide, store } = faultyScene(user)
    store.failsToDecide = () => true
    await expect(decide([of('user=u1')])).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
  })

  it('for a part makes the request fail, and the rest is given back', async () => {
    const { decide, remaining, store } = faultyScene(user, { key: 'backend', quota: true, limit: perMinute(77) })
    store.failsToDecide = asks(77)
    const failing = decide([of('user=u1'), of('backend=b')])
    await expect(failing).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    expect(await remaining('user=u1')).toEqual([3])
  })

  it('for a limit in shadow changes nothing', async () => {
    const { decide, remaining, store } = faultyScene(user, { key: 'trial', shadow: true, limit: perMinute(77) })
    store.failsToDecide = asks(77)
    const decision = await decide([of('trial=1'), of('user=u1')])
    expect(codes(decision)).toEqual(['ok', 'ok', 'ok'])
    expect(decision.statuses[0]).toMatchObject({ isOver: false, remaining: null, resetAfterSeconds: 0 })
    expect(await remaining('user=u1')).toEqual([2])
    expect(codes(await decide([of('trial=1')]))).toEqual(['ok', 'ok'])
  })

  it('to give units back leaves a denial as it is', async () => {
    const { decide, store } = faultyScene(user, { key: 'backend', quota: true, limit: perMinute(0) })
    store.failsToSettle = true
    expect(codes(await decide([of('user=u1'), of('backend=b')]))).toEqual(['over', 'ok', 'over'])
  })

  it.each(['open', 'closed'] as const)('is answered for by the fallback, which is said (%s)', async (failureMode) => {
    const clock = new FakeClock()
    const faulty = new FaultyStore(deferredStore(memoryStore({ clock })))
    faulty.failsToDecide = () => true
    const store = fallbackStore(faulty, { failureMode, clock })
    const { decide } = sceneOn(store, clock, [user])
    const decision = await decide([of('user=u1')])
    expect(decision.code).toBe(failureMode === 'open' ? 'ok' : 'over')
    expect(decision.failure).toMatchObject({ mode: failureMode })
    expect(decision.statuses).toMatchObject([
      { remaining: failureMode === 'open' ? null : 0, limit: { unit: 'minute' } },
    ])
    await store.close()
  })
})

// The promise once more, in the plainest words: numbers by name, no batches, nothing to give back.

interface ModelRule {
  readonly limit: number
  readonly shadow: boolean
  readonly quota: boolean
}

const MODEL_KEYS = ['a', 'b', 'c', 'd']

function modelDecision(
  rules: Readonly<Record<string, ModelRule>>,
  used: Map<string, number>,
  request: readonly { readonly key: string; readonly units: number }[],
): unknown {
  const wanted = new Map<string, number>()
  for (const { key, units } of request) wanted.set(key, (wanted.get(key) ?? 0) + units)
  const left = (key: string): number => rules[key]!.limit - (used.get(key) ?? 0)
  const isOver = (key: string): boolean => (wanted.get(key) === 0 ? left(key) === 0 : wanted.get(key)! > left(key))
  const keys = [...wanted.keys()]
  const quotas = keys.filter((key) => rules[key]!.quota)
  const quotasOver = quotas.length > 0 && quotas.every((key) => isOver(key) && !rules[key]!.shadow)
  const isDenied = quotasOver || keys.some((key) => !rules[key]!.quota && !rules[key]!.shadow && isOver(key))
  const over = new Map(keys.map((key) => [key, isOver(key)]))
  if (!isDenied) {
    for (const key of keys) if (!over.get(key)) used.set(key, (used.get(key) ?? 0) + wanted.get(key)!)
  }
  const codeOf = (key: string): string => {
    return over.get(key) && !rules[key]!.shadow ? 'over' : 'ok'
  }
  return {
    code: isDenied ? 'over' : 'ok',
    statuses: request.map(({ key }) => ({ code: codeOf(key), isOver: over.get(key), remaining: left(key) })),
  }
}

describe('any sequence of requests', () => {
  const rule = fc.record({ limit: fc.nat(6), shadow: fc.boolean(), quota: fc.boolean() })
  const rules = fc.record(Object.fromEntries(MODEL_KEYS.map((key) => [key, rule])))
  const asked = fc.record({ key: fc.constantFrom(...MODEL_KEYS), units: fc.nat(3) })
  const requests = fc.array(fc.array(asked, { minLength: 1, maxLength: 4 }), { maxLength: 25, size: 'max' })

  it.each<Mode>(['sync', 'async'])('is decided as promised, all or nothing (property, %s)', async (mode) => {
    await fc.assert(
      fc.asyncProperty(rules, requests, async (byKey, all) => {
        const nodes = MODEL_KEYS.map((key) => {
          const { limit, shadow, quota } = byKey[key]!
          return { key, shadow, quota, limit: perMinute(limit) }
        })
        const { decide } = sceneOf(mode, ...nodes)
        const used = new Map<string, number>()
        for (const request of all) {
          const { code, statuses } = await decide(
            request.map(({ key, units }) => of(`${key}=1`, { hitsAddend: units })),
          )
          const seen = statuses.map((status) => ({
            code: status.code,
            isOver: status.isOver,
            remaining: status.remaining,
          }))
          expect({ code, statuses: seen }).toEqual(modelDecision(byKey, used, request))
        }
      }),
      { numRuns: 300 },
    )
  })
})
