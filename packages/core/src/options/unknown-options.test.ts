import { deferredStore } from '@sluice/testing'
import { expect, it } from 'vitest'
import { PolicyEngine } from '../policy/policy-engine.ts'
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
])('%s throws for an unknown option and names the nearest one', (_, create, options, nearest) => {
  expect(() => create(options)).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' }))
  expect(() => create(options)).toThrow(nearest)
})

function remote() {
  return deferredStore(memoryStore())
}
