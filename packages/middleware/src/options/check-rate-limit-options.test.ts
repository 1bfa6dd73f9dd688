import { createLimiter, memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { HttpRequest } from '../http/http-request.ts'
import { createHttpLimiter } from '../limiter/http-limiter.ts'

const adapter = { name: 'test', ownOptions: ['hook'], request: (request: HttpRequest) => request }

/** The message of the error that options lead to. */
function messageFor(options: unknown): string {
  try {
    createHttpLimiter(options as Parameters<typeof createHttpLimiter<HttpRequest>>[0], adapter)
  } catch (error) {
    expect(error).toMatchObject({ code: expect.stringMatching(/^SLUICE_INVALID_(OPTION|RULE|DURATION)$/) })
    return (error as Error).message
  }
  return 'no error'
}

const LIMIT = { limit: 5, window: '1m' }
const limiter = createLimiter({ limit: 5, window: '1m' })
const set = createLimiter({ rules: { a: { limit: 5, window: '1m' }, b: { limit: 5, window: '1m' } } })
const engine = new PolicyEngine({ store: memoryStore() })
const check = () => limiter.check('key')

describe('options that cannot be meant are rejected, with what to do', () => {
  it.each<[string, unknown, string]>([
    ['none', undefined, 'needs options'],
    ['a promise', Promise.resolve(LIMIT), 'was given a promise in place of options'],
    ['a request', { method: 'GET', url: '/' }, 'was given a request in place of options'],
    ['no limit', {}, 'a limit such as { limit: 100, window: "1m" }'],
    ['a name that is near', { ...LIMIT, onLimitted: () => undefined }, 'Did you mean "onLimited"?'],
    ['a name of another library', { ...LIMIT, keyGenerator: () => 'a' }, 'there is no option "keyGenerator"'],
    ['a rule that has no window', { limit: 5 }, 'window'],
    ['a rule with a number that is none', { limit: '5', window: '1m' }, '"limit"'],
    ['two sources', { ...LIMIT, limiter }, 'limits come from the fields of a rule and "limiter"'],
    ['two other sources', { engine, check }, 'limits come from "engine" and "check"'],
    ['rules that are none', { rules: 5 }, '"rules" cannot be used; received 5'],
    ['rules that are empty', { rules: {} }, '"rules" is empty'],
    ['a rule that is none', { rules: { a: 5 } }, 'the rule "a" cannot be used'],
    ['a rule with a key that is none', { rules: { a: { ...LIMIT, key: 'user' } } }, '"key" of the rule "a"'],
    ['a rule with a cost that is none', { rules: { a: { ...LIMIT, cost: -1 } } }, '"cost" of the rule "a"'],
    ['a rule with an option that is none', { rules: { a: { ...LIMIT, limmit: 1 } } }, 'limmit'],
    ['a set without rules', { limiter: set }, 'the limiter has several rules'],
    ['a limiter with rules', { limiter, rules: { a: {} } }, 'the limiter has one rule'],
    ['a set with limits', { limiter: set, rules: { a: { limit: 5 } } }, '"limit" of the rule "a" has no effect'],
    ['a set that settles', { limiter: set, rules: { a: {}, b: {} }, actualCost: () => 1 }, 'Pass "rules" and "store"'],
    ['a limiter with tiers', { limiter, ipv6: { tiers: [] } }, '"ipv6.tiers" has no effect'],
    ['a limiter with a store', { limiter, store: memoryStore() }, 'pass it to createLimiter'],
    ['a limiter with a name', { limiter, name: 'a' }, 'pass it to createLimiter'],
    ['rules with a name', { rules: { a: LIMIT }, name: 'a' }, 'Each of the rules has its name'],
    ['an engine with a key', { engine, key: () => 'a' }, 'Say who calls with "identify"'],
    ['an engine with prefixes', { engine, ipv6: {} }, 'ipv6PrefixLength'],
    ['identify without an engine', { ...LIMIT, identify: () => ({}) }, 'use "key"'],
    ['a function with refunds', { check, refund: [500] }, 'cannot be given back from here'],
    ['a function with settlement', { check, actualCost: () => 1 }, 'cannot be changed from here'],
    ['a key that is none', { ...LIMIT, key: 'user' }, '"ip" or a function'],
    ['a cost that is none', { ...LIMIT, cost: 1.5 }, 'a whole number of units'],
    ['statuses that are none', { ...LIMIT, refund: [600] }, 'a list of statuses'],
    ['a profile that is none', { ...LIMIT, headers: 'draft-8' }, 'one of legacy, draft-11, both, off'],
    ['too much jitter', { ...LIMIT, jitter: 1 }, 'from 0 to below 1'],
    ['a status of success', { ...LIMIT, status: 200 }, 'a status from 400 to 599'],
    ['a shadow that is none', { ...LIMIT, shadow: 'yes' }, 'true or false'],
    ['a skip that is none', { ...LIMIT, skip: true }, 'a function'],
    ['a name that is empty', { ...LIMIT, name: '' }, 'a non-empty string'],
    ['to trust everybody', { ...LIMIT, trustProxy: true }, 'say how many proxies there are'],
  ])('%s', (_what, options, message) => {
    expect(messageFor(options)).toContain(message)
  })

  it('those of the adapter are known, and those that are undefined are left out', () => {
    expect(messageFor({ ...LIMIT, hook: 'onRequest', store: undefined, limiter: undefined, rules: undefined })).toBe(
      'no error',
    )
  })

  it('one name for two rules on one store', () => {
    const store = memoryStore()
    createHttpLimiter<HttpRequest>({ limit: 5, window: '1m', store }, adapter)
    const again = () => createHttpLimiter<HttpRequest>({ limit: 6, window: '1m', store }, adapter)
    expect(again).toThrow('SLUICE_RULE_CONFLICT')
  })
})
