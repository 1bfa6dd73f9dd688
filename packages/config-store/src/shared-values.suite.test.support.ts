import { describe, expect, it } from 'vitest'
import type { ConfigStore } from './config-store.ts'
import type { ConfigStoreOptions } from './open-config-store.ts'

/** Secrets, numbers and totals, which nodes share besides rules. */
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
    it('are made once, by whoever asks first, and differ by name', async () => {
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
  })

  describe('totals', () => {
    it('add up, are listed by time, and are forgotten', async () => {
      const store = await open()
      const total = {
        spanMs: 60_000,
        startAt: 120_000,
        resource: '/a',
        dimension: 'user',
        result: 'allowed',
        region: '',
      }
      await store.rollups.add([
        { ...total, count: 3 },
        { ...total, result: 'denied', count: 1 },
        { ...total, startAt: 60_000, resource: 'odd \0 \ud83d', count: 7 },
        { ...total, spanMs: 3_600_000, startAt: 0, count: 100 },
      ])
      await store.rollups.add([{ ...total, count: 4 }])
      await store.rollups.add([])
      const listed = await store.rollups.list({ spanMs: 60_000, from: 60_000, to: 180_000 })
      expect(listed.map(({ startAt, resource, result, count }) => [startAt, resource, result, count])).toEqual([
        [60_000, 'odd \0 \ud83d', 'allowed', 7],
        [120_000, '/a', 'allowed', 7],
        [120_000, '/a', 'denied', 1],
      ])
      expect(await store.rollups.list({ spanMs: 60_000, from: 0, to: 120_000 })).toHaveLength(1)
      await store.rollups.removeBefore(60_000, 120_000)
      expect(await store.rollups.list({ spanMs: 60_000, from: 0, to: 180_000 })).toHaveLength(2)
      expect(await store.rollups.list({ spanMs: 3_600_000, from: 0, to: 1 })).toHaveLength(1)
    })
  })
}
