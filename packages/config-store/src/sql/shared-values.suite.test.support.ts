import { describe, expect, it } from 'vitest'
import type { ConfigStore } from '../config-store.ts'
import type { ConfigStoreOptions } from '../open-config-store.ts'

/** Secrets, numbers, totals and documents, which nodes share besides rules. */
export function describeSharedValues(open: (options?: ConfigStoreOptions) => Promise<ConfigStore>): void {
  describe('the audit log', () => {
    it('takes note of what was done elsewhere', async () => {
      const store = await open({ nowMs: () => 1234 })
      await store.audit.add({ action: 'counters.reset', target: 'user:u1' }, { name: 'ada', note: 'asked to' })
      const record = { by: 'ada', note: 'asked to', action: 'counters.reset', target: 'user:u1', at: 1234 }
      expect((await store.audit.list()).items).toEqual([expect.objectContaining(record)])
    })
  })

  describe('secrets', () => {
    it('are created once, by the first caller, and differ by name', async () => {
      const store = await open()
      const asked = await Promise.all([1, 2, 3, 4].map(() => store.secrets.get('signing')))
      expect(asked[0]).toHaveLength(32)
      expect(new Set(asked.map((secret) => Buffer.from(secret).toString('hex'))).size).toBe(1)
      expect(await store.secrets.get('other')).not.toEqual(asked[0])
    })
  })

  describe('numbers', () => {
    it('belong to one holder at a time, come back when they are released or run out, and end', async () => {
      let now = 1_000_000
      const store = await open({ nowMs: () => now })
      const take = (holder: string): Promise<number | undefined> =>
        store.numbers.take({ name: 'machine', count: 2, holder, leaseMs: 1000 })
      expect(new Set(await Promise.all(['a', 'b', 'c'].map(take)))).toEqual(new Set([0, 1, undefined]))
      await store.numbers.release({ name: 'machine', holder: 'a' })
      await store.numbers.release({ name: 'machine', holder: 'b' })
      await store.numbers.release({ name: 'machine', holder: 'c' })
      expect([await take('a'), await take('b'), await take('c')]).toEqual([0, 1, undefined])
      expect(await take('a')).toBe(0)
      now += 999
      expect(await take('a')).toBe(0)
      expect(await take('c')).toBe(undefined)
      now += 1
      expect(await take('c')).toBe(1)
      expect(await store.numbers.take({ name: 'other', count: 1, holder: 'b', leaseMs: 1000 })).toBe(0)
    })

    it('are those that are wanted where these are free, and no other where no other will do', async () => {
      let now = 1_000_000
      const store = await open({ nowMs: () => now })
      const take = (holder: string, wanted: number, onlyWanted = false): Promise<number | undefined> =>
        store.numbers.take({ name: 'machine', count: 9, holder, leaseMs: 1000, wanted, onlyWanted })
      expect([await take('a', 7), await take('b', 7), await take('c', 7, true)]).toEqual([7, 0, undefined])
      // A holder keeps its number, whichever it asks for.
      expect([await take('a', 3), await take('a', 7, true), await take('b', 8)]).toEqual([7, 7, 0])
      now += 1000
      expect([await take('c', 7, true), await take('a', 7), await take('a', 7, true)]).toEqual([7, 0, undefined])
    })
  })

  describe('documents', () => {
    it('are changed only by who has seen the newest', async () => {
      const store = await open()
      const { documents } = store
      expect(await documents.get('a')).toBeUndefined()
      expect(await documents.put('a', 'too early', 1)).toBe(false)
      expect(await documents.put('a', '{"one":1}', 0)).toBe(true)
      expect(await documents.put('a', 'again', 0)).toBe(false)
      expect(await documents.get('a')).toEqual({ revision: 1, body: '{"one":1}' })
      expect(await documents.put('a', '{"two":"\\u0000ä"}', 1)).toBe(true)
      expect(await documents.put('a', 'late', 1)).toBe(false)
      expect(await documents.get('a')).toEqual({ revision: 2, body: '{"two":"\\u0000ä"}' })
      expect(await documents.get('b')).toBeUndefined()
    })

    it('lose no change of several who change them at the same time', async () => {
      const store = await open()
      const add = async (name: string): Promise<void> => {
        for (;;) {
          const found = await store.documents.get('list')
          const body = JSON.stringify([...JSON.parse(found?.body ?? '[]'), name])
          if (await store.documents.put('list', body, found?.revision ?? 0)) return
        }
      }
      await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(add))
      const { body, revision } = (await store.documents.get('list'))!
      expect(JSON.parse(body).toSorted()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
      expect(revision).toBe(6)
    })
  })

  describe('totals', () => {
    it('take the place of older ones of the same process and span, are listed by time, and are forgotten', async () => {
      const store = await open()
      const row = { stepMs: 60_000, at: 120_000, source: 'node-1', body: '{"count":1}' }
      await store.rollups.put([
        row,
        { ...row, source: 'node-2' },
        { ...row, at: 60_000 },
        { ...row, stepMs: 3_600_000, at: 0 },
      ])
      await store.rollups.put([row, { ...row, body: '{"count":2}' }])
      await store.rollups.put([])
      const listed = await store.rollups.list({ stepMs: 60_000, fromMs: 60_000, toMs: 180_000 })
      expect(listed.map(({ at, source, body }) => [at, source, body])).toEqual([
        [60_000, 'node-1', '{"count":1}'],
        [120_000, 'node-1', '{"count":2}'],
        [120_000, 'node-2', '{"count":1}'],
      ])
      expect(await store.rollups.list({ stepMs: 60_000, fromMs: 0, toMs: 120_000 })).toHaveLength(1)
      await store.rollups.forget({ stepMs: 60_000, beforeMs: 120_000 })
      expect(await store.rollups.list({ stepMs: 60_000, fromMs: 0, toMs: 180_000 })).toHaveLength(2)
      expect(await store.rollups.list({ stepMs: 3_600_000, fromMs: 0, toMs: 1 })).toHaveLength(1)
    })
  })
}
