import { FakeClock } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Rule } from '../rule/rule.ts'
import { registerAllRuleKinds } from '../rule-kinds.ts'
import { createLimiter } from './create-limiter.ts'
import type { MemoryLimiter, MemoryLimiterOptions } from './memory-limiter.ts'
import { createMemoryLimiter } from './memory-limiter.ts'

registerAllRuleKinds()

const RULES = {
  'token bucket': { algorithm: 'token-bucket', capacity: 5, refillPerSecond: 2 },
  'token bucket with rollover': { algorithm: 'token-bucket', capacity: 5, refillPerSecond: 2, rollover: true },
  'leaky bucket as queue': { algorithm: 'leaky-bucket-queue', capacity: 5, ratePerSecond: 2 },
  'two windows': {
    algorithm: 'sliding-window-log',
    windows: [
      { limit: 3, window: '1s' },
      { limit: 9, window: '10s' },
    ],
  },
  hybrid: { algorithm: 'hybrid', limit: 3, window: '1s', burst: { capacity: 2, refillPerSecond: 1 } },
  off: { limit: 'off', window: '1s' },
  'nothing allowed': { limit: 0, window: '1s' },
} as const satisfies Record<string, Rule>

const calls = fc.array(
  fc.record({
    method: fc.constantFrom('check', 'peek', 'tryAcquire', 'reset'),
    key: fc.constantFrom('a', 'b'),
    options: fc.option(
      fc.record({ cost: fc.nat(6), partial: fc.boolean(), entitled: fc.boolean() }, { requiredKeys: [] }),
      { nil: undefined },
    ),
    afterMs: fc.nat(1500),
  }),
  { maxLength: 30 },
)

describe('a memory limiter', () => {
  it.each(Object.entries(RULES))('answers as other limiters do: %s', (_, rule) => {
    fc.assert(
      fc.property(calls, (asked) => {
        const clock = new FakeClock()
        const limiters: MemoryLimiter[] = [createMemoryLimiter({ ...rule, clock }), createLimiter({ ...rule, clock })]
        for (const { method, key, options, afterMs } of asked) {
          clock.advance(afterMs)
          const [answer, expected] = limiters.map((limiter) =>
            method === 'check' || method === 'peek' ? { ...limiter[method](key, options) } : limiter[method](key),
          )
          expect(answer).toEqual(expected)
        }
      }),
    )
  })

  it.each<[string, object, string, string]>([
    ['a store', { limit: 1, window: '1s', store: {} }, 'SLUICE_UNSUPPORTED', 'has no store'],
    ['several rules', { rules: {} }, 'SLUICE_UNSUPPORTED', 'has no rules'],
    ['slots', { algorithm: 'concurrency', limit: 1, lease: '1s' }, 'SLUICE_UNSUPPORTED', 'has no concurrency'],
    ['a misspelt option', { limit: 1, windw: '1s' }, 'SLUICE_INVALID_RULE', 'Did you mean "window"?'],
    ['too few keys', { limit: 1, window: '1s', maxKeys: 1 }, 'SLUICE_INVALID_OPTION', '"maxKeys"'],
    ['a wrong clock', { limit: 1, window: '1s', clock: () => 5 }, 'SLUICE_INVALID_OPTION', 'nowMicros'],
    ['a wrong source of chance', { limit: 1, window: '1s', random: 5 }, 'SLUICE_INVALID_OPTION', 'nextUint32'],
    ['an unusable name', { limit: 1, window: '1s', name: '#' }, 'SLUICE_INVALID_RULE', 'name of a rule'],
  ])('is not created with %s', (_, options, code, text) => {
    const create = (): unknown => createMemoryLimiter(options as MemoryLimiterOptions)
    expect(create).toThrow(expect.objectContaining({ code }))
    expect(create).toThrow(text)
  })

  it.each<[string, (limiter: MemoryLimiter) => unknown, string]>([
    ['an empty key', (limiter) => limiter.tryAcquire(''), 'SLUICE_INVALID_KEY'],
    ['an empty key to forget', (limiter) => limiter.reset(''), 'SLUICE_INVALID_KEY'],
    ['a cost below 0', (limiter) => limiter.check('a', { cost: -1 }), 'SLUICE_INVALID_COST'],
    ['another option', (limiter) => limiter.peek('a', { costs: 1 } as object), 'SLUICE_INVALID_OPTION'],
  ])('throws for %s', (_, call, code) => {
    const limiter = createMemoryLimiter({ limit: 1, window: '1s' })
    expect(() => call(limiter)).toThrow(expect.objectContaining({ code }))
  })

  it('holds no more keys than it may', () => {
    const limiter = createMemoryLimiter({ limit: 5, window: '1h', maxKeys: 64, clock: new FakeClock() })
    for (let key = 0; key < 1000; key++) limiter.tryAcquire(`key-${key}`)
    const known = Array.from({ length: 1000 }, (_, key) => limiter.peek(`key-${key}`).remaining)
    expect(known.filter((remaining) => remaining < 5)).toHaveLength(64)
  })
})
