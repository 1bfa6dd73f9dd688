import {
  deferredStore,
  expectSameDecisions,
  FakeClock,
  OPERATION_RULES,
  type Operation,
  type OperationRule,
  operations,
  ReferenceStore,
  seededRandom,
  storeSuite,
} from '@sluice/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLimiter } from '../../limiter/create-any-limiter.ts'
import type { Store } from '../store.ts'
import type { StoreObserver } from '../store-event.ts'
import { denyCacheStore } from './deny-cache-store.ts'

const MAX_AGE_MS = 100

function decorated(clock: FakeClock, observe?: StoreObserver): Store<'async'> {
  return denyCacheStore(deferredStore(new ReferenceStore(clock)), {
    maxAgeMs: MAX_AGE_MS,
    monotonicMs: () => clock.nowMicros() / 1000,
    ...(observe === undefined ? {} : { observe }),
  })
}

storeSuite('denyCacheStore', { create: (clock) => decorated(clock) })

/** Time stands still, or goes on by the time that a denial is cached for. */
function inLargeSteps(operation: Operation): Operation {
  if (operation.kind !== 'advance' || operation.ms === 0) return operation
  return { ...operation, ms: Math.max(MAX_AGE_MS, operation.ms) }
}

const NAMES = Object.keys(OPERATION_RULES) as OperationRule[]

/** Operations on few rules, each done three times: denials are met again. */
const insistent: fc.Arbitrary<Operation[]> = fc
  .subarray(NAMES, { minLength: 1, maxLength: 3 })
  .chain((rules) => operations({ rules }))
  .map((sequence) => sequence.flatMap((operation) => [operation, operation, operation]))

test('answers exactly as the store beneath, whatever is done to both, while no time passes', async () => {
  let remembered = 0
  await fc.assert(
    fc.asyncProperty(insistent, async (sequence) => {
      const clock = new FakeClock()
      const one = new ReferenceStore(clock)
      const other = decorated(clock, () => void remembered++)
      await expectSameDecisions(one, other, { operations: sequence.map(inLargeSteps), clock })
    }),
    { numRuns: 300 },
  )
  expect(remembered).toBeGreaterThan(100)
})

test('allows and denies as the store beneath, with the same retry time, as time passes', async () => {
  const steps = fc.array(
    fc.record({
      rule: fc.constantFrom(...NAMES),
      key: fc.constantFrom('a', 'b'),
      cost: fc.integer({ min: 0, max: 7 }),
      advanceMicros: fc.oneof(fc.nat(5000), fc.nat(400_000)),
    }),
    { maxLength: 60 },
  )
  let remembered = 0
  await fc.assert(
    fc.asyncProperty(steps, async (calls) => {
      const clock = new FakeClock()
      const random = seededRandom(1)
      const store = decorated(clock, () => void remembered++)
      const one = createLimiter({ rules: OPERATION_RULES, store: new ReferenceStore(clock), clock, random })
      const other = createLimiter({ rules: OPERATION_RULES, store, clock, random })
      for (const { rule, key, cost, advanceMicros } of calls) {
        for (let again = 0; again < 3; again++) {
          clock.advanceMicros(advanceMicros)
          const expected = one.limiter(rule).check(key, { cost })
          const { allowed, reason, retryAfterMs, limit } = await other.limiter(rule).check(key, { cost })
          expect({ allowed, reason, retryAfterMs, limit }).toEqual({
            allowed: expected.allowed,
            reason: expected.reason,
            retryAfterMs: expected.retryAfterMs,
            limit: expected.limit,
          })
        }
      }
    }),
    { numRuns: 300 },
  )
  expect(remembered).toBeGreaterThan(100)
})
