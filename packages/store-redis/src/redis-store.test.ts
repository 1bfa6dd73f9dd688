import { isSluiceError } from '@sluice/core'
import { spaceOf } from '@sluice/core/internal'
import { describe, expect, it } from 'vitest'
import { redisStore } from './redis-store.ts'

/** A port without a listener. */
const NOWHERE = 'redis://127.0.0.1:1'

describe('a Redis store', () => {
  it.each([
    ['a misspelt option', { deadline: 50 }, 'the Redis store has no option "deadline"'],
    ['a prefix that cannot be told from a key', { prefix: 'a{b}' }, '"prefix" of the Redis store cannot be used'],
    ['no time at all', { deadlineMs: 0 }, '"deadlineMs" of the fallback store cannot be used'],
    ['an unknown failure mode', { failureMode: 'maybe' }, '"failureMode" of the fallback store cannot be used'],
    ['leases that are neither on nor off', { leases: 'yes' }, '"leases" of the Redis store cannot be used'],
    ['a deny cache of no time', { denyCache: 0 }, '"maxAgeMs" of the deny cache cannot be used'],
  ])('rejects %s, and says what it takes', (_what, options, problem) => {
    const make = (): unknown => redisStore(NOWHERE, options as never)
    expect(make).toThrow(problem)
    try {
      make()
    } catch (error) {
      expect(isSluiceError(error, 'SLUICE_INVALID_OPTION')).toBe(true)
      expect((error as { expected: string }).expected).not.toBe('')
    }
  })

  it('may keep the same counters as another one unless their prefixes differ', async () => {
    const stores = [{}, { prefix: 'sluice' }, { prefix: 'orders' }].map((options) => redisStore(NOWHERE, options))
    const [usual, same, other] = stores.map(spaceOf)
    expect(same).toBe(usual)
    expect(other).not.toBe(usual)
    await Promise.all(stores.map((store) => store.close()))
  })

  it('can be closed before it was ever connected, and again', async () => {
    const store = redisStore(NOWHERE)
    expect(await store.ready(1)).toBe(false)
    await store.close()
    await store.close()
    expect(store.stats()).toMatchObject({ breaker: 'closed', nodes: 1, leases: undefined })
  })
})
