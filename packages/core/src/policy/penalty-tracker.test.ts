import { deferredStore, FakeClock } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { memoryStore } from '../store/memory/memory-store.ts'
import type { Store } from '../store/store.ts'
import type { Block } from './entries/live-entry.ts'
import { PolicyEngine } from './policy-engine.ts'
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
