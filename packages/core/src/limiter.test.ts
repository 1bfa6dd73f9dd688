import { describe, expect, it } from 'vitest'
import { createLimiter as createAnyLimiter } from './index.ts'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  hybrid,
  leakyBucketMeter,
  leakyBucketQueue,
  memoryStore,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from './limiter.ts'

// Nothing of `@sluice/testing` here: it makes rules of its own, which would register algorithms.
const clock = { nowMicros: (): number => 1_800_000_000_000_000 }

describe('limiters that carry only the algorithms of their rules', () => {
  // First: what a test below registers stays registered.
  it.each([
    ['token-bucket', { algorithm: 'token-bucket', capacity: 1, refillPerSecond: 1 }, 'tokenBucket'],
    ['the default', { limit: 1, window: '1s' }, 'gcra'],
  ] as const)('do not have %s before a rule of it was made, and say what to do', (_what, rule, builder) => {
    expect(() => createLimiter(rule)).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_RULE', action: expect.stringContaining(`Write ${builder}({`) }),
    )
  })

  it.each([
    ['tokenBucket', tokenBucket, { capacity: 3, refillPerSecond: 1 }],
    ['leakyBucketMeter', leakyBucketMeter, { capacity: 3, leakPerSecond: 1 }],
    ['leakyBucketQueue', leakyBucketQueue, { capacity: 3, ratePerSecond: 1 }],
    ['fixedWindow', fixedWindow, { limit: 3, window: '1m' }],
    ['slidingWindowCounter', slidingWindowCounter, { limit: 3, window: '1m' }],
    ['slidingWindowLog', slidingWindowLog, { limit: 3, window: '1m' }],
    ['gcra', gcra, { limit: 3, window: '1m' }],
    ['hybrid', hybrid, { limit: 2, window: '1m', burst: { capacity: 1, refillPerSecond: 1 } }],
    ['concurrency', concurrency, { limit: 3, lease: '1m' }],
  ] as const)('decide by the rules of %s, as others do', (_name, make, options) => {
    const rule = make(options as never)
    const decisions = (create: typeof createLimiter): unknown[] => {
      const limiter = create({ ...rule, clock })
      return Array.from({ length: 5 }, () => ({ ...limiter.check('key') }))
    }
    const [first, , , fourth] = decisions(createLimiter)
    expect([first, fourth]).toMatchObject([{ allowed: true }, { allowed: false }])
    expect(decisions(createLimiter)).toEqual(decisions(createAnyLimiter))
  })

  it('take several rules, and rules with their options beside them', () => {
    const limits = createLimiter({ rules: { read: gcra({ limit: 2, window: '1h' }) } })
    expect(limits.checkAll([{ rule: 'read', key: 'a' }])).toMatchObject({ allowed: true, remaining: 1 })
    const store = memoryStore()
    const named = createLimiter({ ...gcra({ limit: 5, window: '1h' }), name: 'named', store })
    expect(named.check('a', { cost: 2 })).toMatchObject({ rule: 'named', remaining: 3 })
  })
})
