import { expect, it } from 'vitest'
import { compileRule } from '../rule-kinds.ts'
import { createBatch, createItem, receiptOf } from './batch.ts'

const [LIMIT] = compileRule('rule', { limit: 10, window: '1m' })

it('a receipt has each charge at the time its limit was decided, which may differ from that of the batch', () => {
  const batch = createBatch([createItem(LIMIT!, 'ada', 2), createItem(LIMIT!, 'bob', 3)])
  batch.now = 5_000_000
  batch.items[1]!.at = 4_000_000
  const charges = receiptOf(batch).charges.map(({ key, cost, at }) => ({ key, cost, at }))
  expect(charges).toEqual([
    { key: 'ada', cost: 2, at: 5_000_000 },
    { key: 'bob', cost: 3, at: 4_000_000 },
  ])
})
