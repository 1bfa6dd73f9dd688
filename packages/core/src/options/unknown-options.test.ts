import { deferredStore } from '@sluice/testing'
import { expect, it } from 'vitest'
import { PolicyEngine } from '../policy/policy-engine.ts'
import { assertRuleSet, checkRuleSet, checkRuleSetFile } from '../policy/rule-set/checks/check-rule-set.ts'
import { denyCacheStore } from '../store/deny-cache/deny-cache-store.ts'
import { fallbackStore } from '../store/fallback/fallback-store.ts'
import { leasedStore } from '../store/leased/leased-store.ts'
import { memoryStore } from '../store/memory/memory-store.ts'

// A misspelt option must not be taken for one that was left out.
it.each<[string, (options: object) => unknown, object, string]>([
  ['fallbackStore', (options) => fallbackStore(remote(), options), { deadlineMS: 5 }, '"deadlineMs"'],
  ['fallbackStore, breaker', (options) => fallbackStore(remote(), options), { breaker: { failure: 5 } }, '"failures"'],
  ['leasedStore', (options) => leasedStore(remote(), options), { leasedMs: 500 }, '"leaseMs"'],
  ['denyCacheStore', (options) => denyCacheStore(remote(), options), { maxAge: 500 }, '"maxAgeMs"'],
  ['PolicyEngine', (options) => new PolicyEngine({ store: memoryStore(), ...options }), { ruleset: {} }, '"ruleSet"'],
  ['PolicyEngine.use', (options) => engine().use(options), { enforce: undefined }, '"enforced"'],
  ['PolicyEngine.reserve', (options) => engine().reserve(REQUEST, options), { expireAfter: '1s' }, '"expiresAfter"'],
  ['decideDescriptors', (options) => engine().decideDescriptors(ENVOY, options), { charges: 'always' }, '"charge"'],
  ['checkRuleSet', (options) => checkRuleSet({ rules: [] }, options), { costFunction: [] }, '"costFunctions"'],
  ['checkRuleSetFile', (options) => checkRuleSetFile({ rules: [] }, options), { costFunction: [] }, '"costFunctions"'],
  ['assertRuleSet', (options) => assertRuleSet({ rules: [] }, options), { costFunction: [] }, '"costFunctions"'],
])('%s throws for an unknown option and names the nearest one', (_, create, options, nearest) => {
  expect(() => create(options)).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' }))
  expect(() => create(options)).toThrow(nearest)
})

it('PolicyEngine.acquire rejects an unknown option and names the nearest one', async () => {
  await expect(engine().acquire(REQUEST, { maxWai: '1s' } as object)).rejects.toThrow('"maxWait"')
})

const REQUEST = { resource: '/' }
const ENVOY = { domain: 'edge', descriptors: [{ entries: [{ key: 'path', value: '/' }] }] }

function engine(): PolicyEngine<'sync'> {
  return new PolicyEngine({ store: memoryStore() })
}

function remote() {
  return deferredStore(memoryStore())
}
