import type { RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import { createScene, SECRET } from './observability.test.support.ts'
import { digestOf } from './top-callers.ts'

const RULES: RuleSet = {
  rules: [
    { resource: '/data', dimension: 'user', limit: 2, window: '1h' },
    { resource: '/keys', dimension: 'apiKey', limit: 1, window: '1h' },
    { resource: '/both', dimension: 'user+ip', limit: 1, window: '1h' },
  ],
}

const ALL = { most: 10_000 }

describe('the sample of decisions', () => {
  it('has everything while there is little', () => {
    const { engine, decisions, clock } = createScene({ ruleSet: RULES })
    for (let number = 0; number < 3; number++) {
      engine.check({ resource: '/data', user: 'ann', method: 'GET', cost: 1 })
      clock.advance(1000)
    }
    const listed = decisions.list(ALL)
    expect(listed.map(({ allowed }) => allowed)).toEqual([false, true, true])
    expect(listed[0]).toMatchObject({
      resource: '/data',
      method: 'GET',
      rule: '/data@user',
      dimension: 'user',
      caller: 'ann',
      reason: 'limit',
      limit: 2,
      remaining: 0,
      request: { resource: '/data', user: 'ann', method: 'GET', tokens: 1 },
      hidden: [],
    })
    expect(listed[0]!.retryAfterMs).toBeGreaterThan(0)
    expect(listed[1]).not.toHaveProperty('reason')
  })

  it('keeps a bounded random choice of each 10 seconds, for 15 minutes', () => {
    const { engine, decisions, clock } = createScene({ ruleSet: RULES })
    for (let span = 0; span < 100; span++) {
      for (let number = 0; number < 500; number++) engine.check({ resource: '/data', user: `u${span % 3}` })
      for (let number = 0; number < 500; number++) engine.check({ resource: '/free', user: `n${number}` })
      clock.advance(10_000)
    }
    const listed = decisions.list(ALL)
    expect(listed.filter(({ allowed }) => !allowed).length).toBeLessThanOrEqual(90 * 36)
    expect(listed.filter(({ allowed }) => !allowed).length).toBeGreaterThan(88 * 36)
    expect(listed.filter(({ allowed }) => allowed).length).toBeLessThanOrEqual(90 * 12)
    // Not only the first ones of each span.
    const numbers = listed
      .filter(({ resource }) => resource === '/free')
      .map(({ caller, request }) => caller ?? request.user)
    expect(new Set(numbers).size).toBeGreaterThan(300)
    clock.advance(15 * 60_000)
    expect(decisions.list(ALL)).toEqual([])
  })

  it('knows a decision by the id of its answer', () => {
    const { engine, decisions } = createScene({ ruleSet: RULES })
    const decision = engine.check({ resource: '/data', user: 'ann' })
    engine.check({ resource: '/data', user: 'bob' })
    decisions.name(decision, '4711')
    expect(decisions.callOf('4711')).toMatchObject({ user: 'ann' })
    expect(decisions.callOf('nothing')).toBeUndefined()
    expect(new Set(decisions.list(ALL).map(({ id }) => id)).size).toBe(2)
  })

  it('shows no API key, and finds one by value or digest', () => {
    const { engine, decisions } = createScene({ ruleSet: RULES })
    engine.check({
      resource: '/keys',
      apiKey: 'secret-key',
      user: 'ann',
      descriptors: { apiKey: 'secret-key', model: 'm' },
    })
    engine.check({ resource: '/both', user: 'ann', ip: '192.0.2.1' })
    const digest = digestOf('secret-key', SECRET)
    const text = JSON.stringify(decisions.list(ALL))
    expect(text).not.toContain('secret-key')
    expect(decisions.list({ ...ALL, caller: digest })).toMatchObject([{ caller: digest, hidden: ['apiKey'] }])
    expect(decisions.list({ ...ALL, caller: 'secret-key' })).toHaveLength(1)
    expect(decisions.list({ ...ALL, dimension: 'user+ip' })).toMatchObject([{ caller: 'ann+192.0.2.1' }])
  })

  it('is filtered by resource, rule, caller, outcome and time, and bounded', () => {
    const { engine, decisions, clock } = createScene({ ruleSet: RULES })
    const start = clock.nowMicros() / 1000
    for (const user of ['ann', 'bob', 'ann', 'ann']) {
      engine.check({ resource: '/data', user })
      clock.advance(1000)
    }
    engine.check({ resource: '/free', user: 'ann' })
    const count = (filter: object): number => decisions.list({ ...ALL, ...filter }).length
    expect(count({})).toBe(5)
    expect(count({ resource: '/data' })).toBe(4)
    expect(count({ rule: '/data@user' })).toBe(4)
    expect(count({ caller: 'ann' })).toBe(4)
    expect(count({ outcome: 'denied' })).toBe(1)
    expect(count({ outcome: 'allowed', caller: 'bob' })).toBe(1)
    expect(count({ from: start + 1000, to: start + 3000 })).toBe(2)
    expect(count({ most: 2 })).toBe(2)
  })
})
