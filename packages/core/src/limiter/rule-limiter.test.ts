import { deferredStore } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { compileRule } from '../compile-rule.ts'
import { createBatch, createItem } from '../store/batch.ts'
import type { ListenedStore } from '../store/callback-store.ts'
import { asListened } from '../store/callback-store.ts'
import { memoryStore } from '../store/memory/memory-store.ts'
import { ask } from './rule-limiter.ts'

describe('a store that is listened to', () => {
  it('is not disturbed by what is made of its answer: whoever asked is told', async () => {
    const store: ListenedStore = asListened(deferredStore(memoryStore()))
    const batch = createBatch([createItem(compileRule('rule', { limit: 1, window: '1m' })[0]!, 'key', 1)])
    const finish = (): never => {
      throw new Error('of whoever asked')
    }
    await expect(ask(store, batch, { finish })).rejects.toThrow('of whoever asked')
  })
})
