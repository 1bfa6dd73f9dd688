import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { compileRule, createBatch, createItem } from '@sluice/core/internal'
import type { Limit } from '@sluice/core/store'
import { expect, it } from 'vitest'
import { runAfterIo } from '../system/event-loop.ts'
import type { BulkLimits } from './call-builder.ts'
import { bulkLimitsOf } from './call-builder.ts'

const limitOf = (limit: number): Limit => compileRule('r', { limit, window: '1m' })[0]!

const planFor = (...limits: readonly Limit[]): BulkLimits | undefined =>
  bulkLimitsOf(createBatch(limits.map((limit) => createItem(limit, 'k', 1))))

it('is one plan for the same limits in the same order, whatever was asked in between', () => {
  const [a, b, c] = [limitOf(1), limitOf(2), limitOf(3)]
  const plans = [planFor(a), planFor(a, b), planFor(b, a), planFor(a, b, c)]
  expect(new Set(plans).size).toBe(4)
  const again = [planFor(a), planFor(a, b), planFor(b, a), planFor(a, b, c)]
  expect(again.map((plan) => plans.indexOf(plan))).toEqual([0, 1, 2, 3])
})

it('is forgotten with its limits, also where its first limit stays', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const first = limitOf(100)
  const passing = Array.from({ length: 100 }, (_, index) => {
    const limit = limitOf(index + 1)
    planFor(first, limit)
    return new WeakRef(limit)
  })
  planFor(first)
  // A reference that was just made stays until the turn of the event loop ends.
  await new Promise<void>((resolve) => {
    runAfterIo(resolve)
  })
  collectGarbage()
  expect(passing.filter((limit) => limit.deref() !== undefined)).toHaveLength(0)
})
