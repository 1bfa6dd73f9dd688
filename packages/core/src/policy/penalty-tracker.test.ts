import { deferredStore, FakeClock } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { memoryStore } from '../store/memory/memory-store.ts'
import type { Store } from '../store/store.ts'
import type { Block } from './entries/live-entry.ts'
import { PolicyEngine } from './policy-engine.ts'
import type { Offence } from './policy-engine-options.ts'
import type { PolicyEvent } from './policy-event.ts'
import type { RuleSet } from './rule-set/rule-set.ts'

const PENALTY = { after: 2, within: '1h', block: '1m' } as const
const RULES: RuleSet = {
  rules: [{ name: 'base', resource: '*', dimension: 'user', limit: 1, window: '1h', penalty: PENALTY }],
}
const REQUEST = { resource: '/x', user: 'u' } as const

/** A store that loses everything that is blocked, while told to. */
class LossyStore implements Store<'sync'> {
  readonly mode = 'sync'
  readonly #store: Store<'sync'>
  loses = true

  constructor(store: Store<'sync'>) {
    this.#store = store
  }

  decide: Store<'sync'>['decide'] = (batch) => this.#store.decide(batch)
  settle: Store<'sync'>['settle'] = (receipt, actuals) => this.#store.settle(receipt, actuals)
  reset: Store<'sync'>['reset'] = (limits, key) => this.#store.reset(limits, key)
  close: Store<'sync'>['close'] = () => this.#store.close()

  block: Store<'sync'>['block'] = (rule, key, term) => {
    if (this.loses) throw new Error('away')
    this.#store.block(rule, key, term)
  }
}

describe('a node that fails to write its block', () => {
  it('delays the block of the caller on other nodes by a second, and makes it no longer', () => {
    const clock = new FakeClock()
    const store = new LossyStore(memoryStore({ clock }))
    const made: Block[] = []
    const events: PolicyEvent[] = []
    const options = { store, clock, ruleSet: RULES }
    const failing = new PolicyEngine({ ...options, observer: (event) => void events.push(event) })
    const other = new PolicyEngine({ ...options, keepBlock: (block: Block) => void made.push(block) })
    for (let call = 0; call < 3; call++) failing.check(REQUEST)
    expect(events.map(({ type }) => type)).toEqual(['blocked', 'penalty-failed', 'penalty-failed'])
    expect(failing.check(REQUEST)).toMatchObject({ reason: 'blocked', retryAfterMs: 60_000 })
    store.loses = false
    clock.advance(999)
    expect(other.check(REQUEST)).toMatchObject({ reason: 'limit' })
    expect(made).toEqual([])
    clock.advance(1)
    expect(other.check(REQUEST)).toMatchObject({ reason: 'limit' })
    expect(made).toEqual([expect.objectContaining({ strikes: 1, until: clock.nowMicros() / 1000 + 60_000 })])
    expect(other.check(REQUEST)).toMatchObject({ reason: 'blocked', retryAfterMs: 60_000 })
    expect(failing.check(REQUEST)).toMatchObject({ reason: 'blocked', retryAfterMs: 59_000 })
  })

  it('writes it again when a denial in flight finds it missing, and makes it no longer', async () => {
    const clock = new FakeClock()
    const lossy = new LossyStore(memoryStore({ clock }))
    const held = Promise.withResolvers<void>()
    let answered: Promise<unknown> = Promise.resolve()
    const store: Store<'async'> = {
      ...deferredStore(lossy),
      decide: async (batch) => {
        lossy.decide(batch)
        await answered
      },
    }
    const made: Block[] = []
    const engine = new PolicyEngine({
      store,
      clock,
      ruleSet: RULES,
      keepBlock: (block: Block) => void made.push(block),
    })
    await engine.check(REQUEST)
    answered = held.promise
    const inFlight = engine.check(REQUEST)
    answered = Promise.resolve()
    for (let call = 0; call < 2; call++) await engine.check(REQUEST)
    await settled()
    expect(made).toHaveLength(1)
    lossy.loses = false
    clock.advance(1000)
    held.resolve()
    expect(await inFlight).toMatchObject({ reason: 'limit' })
    await settled()
    expect(made).toHaveLength(1)
    const other = new PolicyEngine({ store, clock, ruleSet: RULES })
    expect(await other.check(REQUEST)).toMatchObject({ reason: 'blocked' })
  })
})

async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await undefined
}

describe('offences', () => {
  const OFFENCE = { name: 'gateway:login', after: 3, within: '1m', block: '10m', reason: 'failed logins' } as const
  const IP = '192.0.2.7'

  /** Two nodes with one store. */
  function nodes() {
    const clock = new FakeClock()
    const store = memoryStore({ clock })
    const kept: Block[][] = [[], []]
    const events: PolicyEvent[] = []
    const [one, other] = kept.map(
      (blocks) =>
        new PolicyEngine({
          store,
          clock,
          ruleSet: { rules: [] },
          keepBlock: (block: Block) => void blocks.push(block),
          observer: (event) => void events.push(event),
          neverBlock: ['198.51.100.0/24'],
        }),
    ) as [PolicyEngine<'sync'>, PolicyEngine<'sync'>]
    return { clock, one, other, kept, events }
  }

  it('block a caller once on one node, counted by all of them', () => {
    const { clock, one, other, kept } = nodes()
    one.reportOffence('ip', IP, OFFENCE)
    other.reportOffence('ip', IP, OFFENCE)
    expect(one.check({ resource: '/x', ip: IP }).allowed).toBe(true)
    one.reportOffence('ip', IP, OFFENCE)
    const until = clock.nowMicros() / 1000 + 600_000
    const block = { dimension: 'ip', entity: IP, until, strikes: 1, rule: 'gateway:login', reason: 'failed logins' }
    expect(kept).toEqual([[{ ...block, forgottenAt: until }], []])
    expect(one.check({ resource: '/x', ip: IP })).toMatchObject({ reason: 'blocked', retryAfterMs: 600_000 })
    one.reportOffence('ip', IP, OFFENCE)
    expect(kept[0]).toHaveLength(1)
  })

  it('tell a node of a block that was not handed to it, and it ends at the same time', () => {
    const { clock, one, other, kept } = nodes()
    for (let call = 0; call < 3; call++) one.reportOffence('ip', IP, OFFENCE)
    clock.advance(60_000)
    expect(other.check({ resource: '/x', ip: IP }).allowed).toBe(true)
    other.reportOffence('ip', IP, OFFENCE)
    expect(other.check({ resource: '/x', ip: IP })).toMatchObject({ reason: 'blocked', retryAfterMs: 540_000 })
    expect(kept[1]?.map(({ until }) => until)).toEqual(kept[0]?.map(({ until }) => until))
    clock.advance(540_000)
    expect(one.check({ resource: '/x', ip: IP }).allowed).toBe(true)
    one.reportOffence('ip', IP, OFFENCE)
    expect(one.check({ resource: '/x', ip: IP }).allowed).toBe(true)
  })

  it('are forgotten when their time is over, when the block is lifted, and apart from each other', async () => {
    const { clock, one } = nodes()
    const isBlocked = (): boolean => !one.check({ resource: '/x', ip: IP, user: 'u' }).allowed
    const offend = (count: number, offence = OFFENCE as Offence): void => {
      for (let call = 0; call < count; call++) one.reportOffence('user', 'u', offence)
    }
    offend(2)
    clock.advance(60_000)
    offend(2)
    offend(2, { ...OFFENCE, name: 'gateway:other' })
    expect(isBlocked()).toBe(false)
    offend(1)
    expect(isBlocked()).toBe(true)
    expect(await one.unblock('user', 'u')).toBe(true)
    expect(isBlocked()).toBe(false)
    offend(2)
    expect(isBlocked()).toBe(false)
    offend(1)
    expect(isBlocked()).toBe(true)
  })

  it('do not block addresses that are never blocked, and one IPv6 network is one caller', () => {
    const { one, kept } = nodes()
    for (const ip of ['127.0.0.1', '198.51.100.9']) {
      for (let call = 0; call < 9; call++) one.reportOffence('ip', ip, OFFENCE)
    }
    expect(kept[0]).toEqual([])
    for (const ip of ['2001:db8::1', '2001:db8::2', '2001:DB8:0::3']) one.reportOffence('ip', ip, OFFENCE)
    expect(one.check({ resource: '/x', ip: '2001:db8::9' })).toMatchObject({ reason: 'blocked' })
  })
})
