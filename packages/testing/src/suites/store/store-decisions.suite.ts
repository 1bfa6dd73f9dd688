import { describe, expect } from 'vitest'
import type { StoreHarness } from './store-fixture.ts'
import { EVERY_ALGORITHM, needsOf, storeTest } from './store-test.ts'

/** What a decision takes, and what it does not. */
export function decisionTests(harness: StoreHarness): void {
  for (const { algorithm, rule } of EVERY_ALGORITHM) everyAlgorithm(harness, algorithm, rule)
  describe('several keys in one step', () => keyTests(harness))
  describe('several rules in one step', () => ruleTests(harness))
}

function everyAlgorithm(
  harness: StoreHarness,
  algorithm: (typeof EVERY_ALGORITHM)[number]['algorithm'],
  rule: (typeof EVERY_ALGORITHM)[number]['rule'],
): void {
  const needs = needsOf(algorithm)
  describe(algorithm, () => {
    storeTest(harness, { title: 'admits exactly its limit', needs }, async ({ limiter }) => {
      const six = limiter(rule)
      const answers: boolean[] = []
      for (let call = 0; call < 9; call++) answers.push(await six.tryAcquire('key'))
      expect(answers).toEqual([true, true, true, true, true, true, false, false, false])
    })

    storeTest(harness, { title: 'counts down what remains, by the cost', needs }, async ({ limiter }) => {
      const six = limiter(rule)
      const first = await six.check('key', { cost: 4 })
      expect(first).toMatchObject({ allowed: true, reason: 'allowed', rule: 'rule', limit: 6, remaining: 2, cost: 4 })
      expect(await six.check('key', { cost: 2 })).toMatchObject({ allowed: true, remaining: 0, cost: 2 })
    })

    storeTest(harness, { title: 'takes nothing for a denied call', needs }, async ({ limiter }) => {
      const six = limiter(rule)
      await six.check('key', { cost: 4 })
      for (let call = 0; call < 3; call++) {
        const denied = await six.check('key', { cost: 3 })
        expect(denied).toMatchObject({ allowed: false, reason: 'limit', remaining: 2, cost: 0, delayMs: 0 })
        expect(denied.retryAfterMs).toBeGreaterThan(0)
      }
      expect(await six.check('key', { cost: 2 })).toMatchObject({ allowed: true, remaining: 0 })
    })

    storeTest(harness, { title: 'answers a cost above its capacity with never', needs }, async ({ limiter }) => {
      const six = limiter(rule)
      expect(await six.check('key', { cost: 7 })).toMatchObject({
        allowed: false,
        reason: 'never',
        retryAfterMs: Number.POSITIVE_INFINITY,
      })
      expect(await six.check('key', { cost: 6 })).toMatchObject({ allowed: true })
    })

    storeTest(harness, { title: 'peeks without taking', needs }, async ({ limiter }) => {
      const six = limiter(rule)
      expect(await six.peek('key', { cost: 2 })).toMatchObject({ allowed: true, remaining: 6, cost: 0 })
      await six.check('key', { cost: 5 })
      expect(await six.peek('key', { cost: 2 })).toMatchObject({ allowed: false, reason: 'limit', remaining: 1 })
      expect(await six.peek('key')).toMatchObject({ allowed: true, remaining: 1 })
      expect(await six.check('key', { cost: 0 })).toMatchObject({ allowed: true, remaining: 1, cost: 0 })
      expect(await six.tryAcquire('key')).toBe(true)
      expect(await six.tryAcquire('key')).toBe(false)
    })

    storeTest(harness, { title: 'grants as much as is left when asked to', needs }, async ({ limiter }) => {
      const six = limiter(rule)
      expect(await six.check('key', { cost: 4, partial: true })).toMatchObject({ allowed: true, cost: 4, remaining: 2 })
      expect(await six.check('key', { cost: 9, partial: true })).toMatchObject({ allowed: true, cost: 2, remaining: 0 })
      const empty = await six.check('key', { cost: 9, partial: true })
      expect(empty).toMatchObject({ allowed: false, reason: 'limit', cost: 0, remaining: 0 })
      expect(empty.retryAfterMs).toBeLessThan(Number.POSITIVE_INFINITY)
    })

    storeTest(harness, { title: 'forgets a key that is reset, and only that', needs }, async ({ limiter }) => {
      const six = limiter(rule)
      await six.check('key', { cost: 6 })
      await six.check('other', { cost: 5 })
      await six.reset('key')
      expect(await six.peek('key')).toMatchObject({ allowed: true, remaining: 6 })
      expect(await six.peek('other')).toMatchObject({ remaining: 1 })
    })

    storeTest(harness, { title: 'gives back what is refunded, once', needs }, async ({ limiter }) => {
      const six = limiter(rule)
      await six.check('key', { cost: 2 })
      const decision = await six.check('key', { cost: 3 })
      const whole = algorithm === 'leaky-bucket-queue' || algorithm === 'concurrency'
      if (!whole) expect(await six.refund(decision, 1)).toEqual({ outcome: 'settled', corrected: -1 })
      expect(await six.refund(decision)).toEqual({ outcome: 'settled', corrected: whole ? -3 : -2 })
      expect(await six.refund(decision)).toEqual({ outcome: 'settled', corrected: 0 })
      expect(await six.refund(decision, 3)).toEqual({ outcome: 'settled', corrected: 0 })
      expect(await six.peek('key')).toMatchObject({ remaining: 4 })
    })

    storeTest(harness, { title: 'refunds no more than was charged', needs }, async ({ limiter }) => {
      const six = limiter(rule)
      await six.check('key', { cost: 3 })
      const decision = await six.check('key', { cost: 2 })
      expect(await six.refund(decision, 100)).toEqual({ outcome: 'settled', corrected: -2 })
      expect(await six.peek('key')).toMatchObject({ remaining: 3 })
    })

    storeTest(harness, { title: 'refunds nothing for a denied or asked call', needs }, async ({ limiter }) => {
      const six = limiter(rule)
      await six.check('key', { cost: 5 })
      for (const decision of [await six.check('key', { cost: 5 }), await six.peek('key')]) {
        expect(await six.refund(decision)).toEqual({ outcome: 'settled', corrected: 0 })
      }
      expect(await six.peek('key')).toMatchObject({ remaining: 1 })
    })
  })
}

function keyTests(harness: StoreHarness): void {
  const rule = { algorithm: 'fixed-window', limit: 3, window: '52w' } as const

  storeTest(harness, { title: 'charges all or none' }, async ({ limiter }) => {
    const three = limiter(rule)
    const both = [{ key: 'a', cost: 2 }, { key: 'b' }]
    expect(await three.checkAll(both)).toMatchObject({ allowed: true, remaining: 1 })
    const denied = await three.checkAll(both)
    expect(denied).toMatchObject({ allowed: false, reason: 'limit', cost: 0 })
    expect(denied.limits).toMatchObject([
      { allowed: false, remaining: 1 },
      { allowed: true, remaining: 2, retryAfterMs: 0 },
    ])
    expect(await three.peek('a')).toMatchObject({ remaining: 1 })
    expect(await three.peek('b')).toMatchObject({ remaining: 2 })
  })

  storeTest(harness, { title: 'adds up the costs of one key' }, async ({ limiter }) => {
    const three = limiter(rule)
    const twice = [{ key: 'a' }, { key: 'b' }, { key: 'a', cost: 2 }]
    expect(await three.checkAll(twice)).toMatchObject({ allowed: true })
    expect(await three.peek('a')).toMatchObject({ remaining: 0 })
    expect(await three.peek('b')).toMatchObject({ remaining: 2 })
    const tooMuch = [
      { key: 'c', cost: 2 },
      { key: 'c', cost: 2 },
    ]
    expect(await three.checkAll(tooMuch)).toMatchObject({ allowed: false, reason: 'never' })
    expect(await three.peek('c')).toMatchObject({ remaining: 3 })
  })

  storeTest(harness, { title: 'allows an empty list of keys' }, async ({ limiter }) => {
    expect(await limiter(rule).checkAll([])).toMatchObject({ allowed: true, cost: 0 })
  })
}

function ruleTests(harness: StoreHarness): void {
  const rules = {
    user: { limit: 2, window: '52w' },
    tenant: { algorithm: 'fixed-window', limit: 3, window: '52w' },
    global: { algorithm: 'token-bucket', capacity: 100, refillPerSecond: 1e-6 },
    off: { limit: 'off', window: '1s' },
  } as const
  const asked = (user: string) => [
    { rule: 'user' as const, key: user },
    { rule: 'tenant' as const, key: 'acme' },
    { rule: 'global' as const, key: 'all' },
    { rule: 'off' as const, key: user },
  ]

  storeTest(harness, { title: 'a denial by one takes nothing from the others, and is named' }, async ({ set }) => {
    const limits = set(rules)
    expect(await limits.checkAll(asked('ann'))).toMatchObject({ allowed: true, rule: 'user', remaining: 1, limit: 2 })
    await limits.checkAll(asked('ann'))
    expect(await limits.checkAll(asked('ann'))).toMatchObject({ allowed: false, reason: 'limit', rule: 'user' })
    expect(await limits.limiter('tenant').peek('acme')).toMatchObject({ remaining: 1 })
    expect(await limits.limiter('global').peek('all')).toMatchObject({ remaining: 98 })
    expect(await limits.checkAll(asked('bob'))).toMatchObject({ allowed: true, rule: 'tenant', remaining: 0 })
    expect(await limits.checkAll(asked('cid'))).toMatchObject({ allowed: false, rule: 'tenant' })
    expect(await limits.limiter('user').peek('cid')).toMatchObject({ remaining: 2 })
    expect(await limits.limiter('global').peek('all')).toMatchObject({ remaining: 97 })
  })

  storeTest(harness, { title: 'reports the denial with the longest wait' }, async ({ set }) => {
    const limits = set({
      short: { algorithm: 'fixed-window', limit: 1, window: '1d' },
      long: { algorithm: 'fixed-window', limit: 1, window: '52w' },
    })
    const both = [
      { rule: 'short' as const, key: 'a' },
      { rule: 'long' as const, key: 'a' },
    ]
    await limits.checkAll(both)
    expect(await limits.peekAll(both)).toMatchObject({ allowed: false, rule: 'long' })
    expect(await limits.peekAll([both[1]!, both[0]!])).toMatchObject({ allowed: false, rule: 'long' })
  })

  storeTest(harness, { title: 'peeks without taking from any' }, async ({ set }) => {
    const limits = set(rules)
    for (let call = 0; call < 5; call++)
      expect(await limits.peekAll(asked('ann'))).toMatchObject({ allowed: true, cost: 0 })
    expect(await limits.limiter('user').peek('ann')).toMatchObject({ remaining: 2 })
  })

  storeTest(harness, { title: 'refunds all of them once, whichever limiter is called' }, async ({ set }) => {
    const limits = set(rules)
    const decision = await limits.checkAll(asked('ann'))
    expect(await limits.refund(decision)).toEqual({ outcome: 'settled', corrected: -3 })
    expect(await limits.refund(decision)).toEqual({ outcome: 'settled', corrected: 0 })
    expect(await limits.limiter('user').refund(decision)).toEqual({ outcome: 'settled', corrected: 0 })
    expect(await limits.limiter('user').peek('ann')).toMatchObject({ remaining: 2 })
    expect(await limits.limiter('tenant').peek('acme')).toMatchObject({ remaining: 3 })
    expect(await limits.limiter('global').peek('all')).toMatchObject({ remaining: 100 })
  })

  storeTest(harness, { title: 'several windows of one rule are decided together' }, async ({ limiter }) => {
    const windows = limiter({
      algorithm: 'fixed-window',
      windows: [
        { limit: 2, window: '1d' },
        { limit: 3, window: '52w' },
      ],
    })
    expect(await windows.check('key')).toMatchObject({ allowed: true, limit: 2, remaining: 1 })
    expect(await windows.check('key', { cost: 2 })).toMatchObject({
      allowed: false,
      limits: [
        { limit: 2, remaining: 1, allowed: false },
        { limit: 3, remaining: 2, allowed: true },
      ],
    })
    expect(await windows.check('key', { cost: 5, partial: true })).toMatchObject({ allowed: true, cost: 1 })
    const decision = await windows.check('other', { cost: 2 })
    expect(await windows.refund(decision, 1)).toMatchObject({ corrected: -2 })
    expect((await windows.peek('other')).limits).toMatchObject([{ remaining: 1 }, { remaining: 2 }])
    await windows.reset('key')
    expect((await windows.peek('key')).limits).toMatchObject([{ remaining: 2 }, { remaining: 3 }])
  })
}
