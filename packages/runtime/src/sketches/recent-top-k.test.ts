import { describe, expect, it } from 'vitest'
import { mergeTopK, RecentTopK } from './top-k.ts'

function recentAt(atMs: number, capacity = 10) {
  const clock = { atMs }
  return { clock, recent: new RecentTopK({ capacity, windowMs: 60_000, nowMs: () => clock.atMs }) }
}

/** Adds each key at its time, then says what is known at another. */
function keysAt(adds: readonly (readonly [atMs: number, key: string])[], atMs: number): string[] {
  const { clock, recent } = recentAt(adds[0]?.[0] ?? 0)
  for (const [addMs, key] of adds) {
    clock.atMs = addMs
    recent.add(key)
  }
  clock.atMs = atMs
  return recent.top(10).map(({ key, count }) => `${key}${count}`)
}

describe('RecentTopK', () => {
  const adds = [
    [30_000, 'a'],
    [59_999, 'a'],
    [60_000, 'a'],
    [61_000, 'b'],
  ] as const

  it.each([
    { atMs: 61_000, keys: ['a3', 'b1'] },
    { atMs: 119_999, keys: ['a3', 'b1'] },
    { atMs: 120_000, keys: ['a1', 'b1'] },
    { atMs: 179_999, keys: ['a1', 'b1'] },
    { atMs: 180_000, keys: [] },
    { atMs: 1e12, keys: [] },
    // Back by less than a generation: time stands still.
    { atMs: 59_999, keys: ['a3', 'b1'] },
    { atMs: 0, keys: ['a3', 'b1'] },
    // Back further: everything was counted at a wrong time.
    { atMs: -1, keys: [] },
  ])('knows $keys at $atMs', ({ atMs, keys }) => {
    expect(keysAt(adds, atMs)).toEqual(keys)
  })

  it('always knows the last window, and nothing older than two', () => {
    for (let startMs = 0; startMs < 60_000; startMs += 7000) {
      expect(keysAt([[startMs, 'a']], startMs + 59_999), `from ${startMs}`).toEqual(['a1'])
      expect(keysAt([[startMs, 'a']], startMs + 120_000), `from ${startMs}`).toEqual([])
    }
  })

  it('goes on with what it forgot as if it were new', () => {
    const { clock, recent } = recentAt(0)
    recent.add('a', 5)
    clock.atMs = 240_000
    recent.add('b', 2)
    expect(recent.snapshot()).toEqual({
      total: 2,
      missed: 0,
      entries: [{ key: 'b', count: 2, missed: 0 }],
      startedAt: 180_000,
    })
  })

  it('changes generation together with every other one, whenever it was made', () => {
    const [early, late] = [recentAt(1000), recentAt(59_000)]
    early.recent.add('a')
    late.recent.add('a', 2)
    for (const { clock, recent } of [early, late]) {
      clock.atMs = 61_000
      recent.add('b')
    }
    const snapshots = [early, late].map(({ recent }) => recent.snapshot())
    expect(snapshots.map(({ startedAt }) => startedAt)).toEqual([0, 0])
    expect(mergeTopK(snapshots).entries.map(({ key, count }) => [key, count])).toEqual([
      ['a', 3],
      ['b', 2],
    ])
  })

  it('stays within the capacity of two generations', () => {
    const { clock, recent } = recentAt(0, 5)
    for (let n = 0; n < 10_000; n++) {
      clock.atMs = n * 100
      recent.add(`k${n}`)
      expect(recent.snapshot().entries.length).toBeLessThanOrEqual(10)
    }
  })

  it('rejects options and clocks that cannot be', () => {
    const nowMs = (): number => 0
    const invalid = expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' })
    expect(() => new RecentTopK({ capacity: 1, windowMs: 999, nowMs })).toThrow(invalid)
    expect(() => new RecentTopK({ capacity: 0, windowMs: 1000, nowMs })).toThrow(invalid)
    expect(() => recentAt(0).recent.top(-1)).toThrow(invalid)
    const { clock, recent } = recentAt(0)
    clock.atMs = Number.NaN
    expect(() => recent.add('a')).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_PORT' }))
  })
})
