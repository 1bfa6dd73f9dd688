import { deferredStore } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { compileRule } from '../rule-kinds.ts'
import { createBatch, createItem } from '../store/batch.ts'
import { callbackStore } from '../store/callback-store.ts'
import { memoryStore } from '../store/memory/memory-store.ts'
import { decide } from './rule-limiter.ts'

describe.each([
  { store: deferredStore(memoryStore()), kind: 'by promise' },
  { store: callbackStore(deferredStore(memoryStore())), kind: 'by callback' },
])('a store that decides $kind', ({ store }) => {
  it('is not disturbed by an error in what is made of its decision: the caller gets it', async () => {
    const batch = createBatch([createItem(compileRule('rule', { limit: 1, window: '1m' })[0]!, 'key', 1)])
    const finish = (): never => {
      throw new Error('of the caller')
    }
    await expect(decide(store, batch, { finish })).rejects.toThrow('of the caller')
  })
})
