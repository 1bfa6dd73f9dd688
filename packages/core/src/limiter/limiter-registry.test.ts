import { describe, expect, it } from 'vitest'
import { PolicyEngine } from '../policy/policy-engine.ts'
import { noteSpace, spaceOf } from '../store/counter-namespace.ts'
import { memoryStore } from '../store/memory/memory-store.ts'
import type { Store } from '../store/store.ts'
import { createLimiter } from './create-any-limiter.ts'
import { placeOf } from './limiter-registry.ts'

const LIMIT = { limit: 5, window: '1m' } as const

describe('the place where a limiter counts', () => {
  it('is the store that it was given, under the name of its rule', () => {
    const store = memoryStore()
    expect(placeOf(createLimiter({ ...LIMIT, store }))).toEqual({ store, rules: ['default'] })
    expect(placeOf(createLimiter({ ...LIMIT, store, name: 'login' }))).toEqual({ store, rules: ['login'] })
  })

  it('is in memory when it was given none', () => {
    expect(placeOf(createLimiter(LIMIT))?.store.mode).toBe('sync')
  })

  it('has the names of all rules of a set, and of one when that is taken out', () => {
    const store = memoryStore()
    const set = createLimiter({ rules: { user: LIMIT, address: LIMIT }, store })
    expect(placeOf(set)).toEqual({ store, rules: ['user', 'address'] })
    expect(placeOf(set.limiter('user'))).toEqual({ store, rules: ['user'] })
  })

  it('has no names for an engine, whose rules change', () => {
    const store = memoryStore()
    expect(placeOf(new PolicyEngine({ store }))).toEqual({ store, rules: [] })
  })

  it('is not known of what was made elsewhere', () => {
    expect(placeOf({ check: () => true })).toBeUndefined()
  })
})

describe('what stores have in common that may keep the same counters', () => {
  it('is a local store itself', () => {
    const store = memoryStore()
    expect(spaceOf(store)).toBe(store)
    expect(spaceOf(store)).not.toBe(spaceOf(memoryStore()))
  })

  it('is what a store outside the process says, and one place for all that say nothing', () => {
    const remote = (): Store => ({ ...memoryStore(), mode: 'async' }) as unknown as Store
    const [one, other, third] = [remote(), remote(), remote()]
    expect(spaceOf(one)).toBe(spaceOf(other))
    noteSpace(one, 'orders')
    noteSpace(third, 'orders')
    expect(spaceOf(one)).toBe(spaceOf(third))
    expect(spaceOf(one)).not.toBe(spaceOf(other))
  })
})
