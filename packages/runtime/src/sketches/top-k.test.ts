import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mergeTopK, TopK, type TopKSnapshot } from './top-k.ts'

const amounts = fc.record({
  // Few frequent keys and many that are seen once or twice.
  key: fc.oneof(fc.nat({ max: 4 }), fc.nat({ max: 60 })).map((number) => `k${number}`),
  amount: fc.integer({ min: 1, max: 9 }),
})
const streams = fc.array(amounts, { maxLength: 300 })
const capacities = fc.integer({ min: 1, max: 30 })

type Stream = readonly { readonly key: string; readonly amount: number }[]

function countExactly(stream: Stream): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { key, amount } of stream) counts.set(key, (counts.get(key) ?? 0) + amount)
  return counts
}

function sketchOf(stream: Stream, capacity: number): TopKSnapshot {
  const sketch = new TopK({ capacity })
  for (const { key, amount } of stream) sketch.add(key, amount)
  return sketch.snapshot()
}

/** Everything that is promised of a sketch, against the exact counts. */
function expectPromises(snapshot: TopKSnapshot, stream: Stream, capacity: number): void {
  const exact = countExactly(stream)
  const total = stream.reduce((sum, { amount }) => sum + amount, 0)
  expect(snapshot.total).toBe(total)
  const greatestError = (2 * total) / (capacity + 1)
  expect(snapshot.missed).toBeLessThanOrEqual(greatestError)
  const kept = new Set(snapshot.entries.map(({ key }) => key))
  expect(kept.size).toBe(snapshot.entries.length)
  for (const { key, count, missed } of snapshot.entries) {
    expect(count).toBeLessThanOrEqual(exact.get(key)!)
    expect(count + missed).toBeGreaterThanOrEqual(exact.get(key)!)
    expect(missed).toBeLessThanOrEqual(greatestError)
  }
  for (const [key, count] of exact) if (!kept.has(key)) expect(count).toBeLessThanOrEqual(snapshot.missed)
  const counts = snapshot.entries.map(({ count }) => count)
  expect(counts).toEqual(counts.toSorted((one, other) => other - one))
}

describe('TopK', () => {
  it('keeps its bounds of error against an exact count (property)', () => {
    fc.assert(
      fc.property(streams, capacities, (stream, capacity) => {
        const snapshot = sketchOf(stream, capacity)
        expectPromises(snapshot, stream, capacity)
        expect(snapshot.entries.length).toBeLessThanOrEqual(capacity)
      }),
    )
  })

  it('is exact while all keys fit (property)', () => {
    fc.assert(
      fc.property(streams, (stream) => {
        const { entries, missed } = sketchOf(stream, 65)
        expect(missed).toBe(0)
        expect(new Map(entries.map(({ key, count }) => [key, count]))).toEqual(countExactly(stream))
      }),
    )
  })

  it('finds the frequent keys in a flood of keys that come once, and does not grow', () => {
    const sketch = new TopK({ capacity: 100 })
    for (let n = 0; n < 200_000; n++) {
      sketch.add(`once-${n}`)
      if (n % 10 === 0) sketch.add('often')
      if (n % 20 === 0) sketch.add('less often')
    }
    expect(sketch.snapshot().entries.length).toBeLessThanOrEqual(100)
    const [first, second] = sketch.top(2)
    expect(first).toEqual({ key: 'often', count: 20_000, missed: 0 })
    expect(second).toEqual({ key: 'less often', count: 10_000, missed: 0 })
  })

  it('lists the best first, and those of one count by key', () => {
    const sketch = new TopK({ capacity: 10 })
    for (const key of ['b', 'c', 'a', 'c', 'd', 'b']) sketch.add(key)
    expect(sketch.top().map(({ key }) => key)).toEqual(['b', 'c', 'a', 'd'])
    expect(sketch.top(3).map(({ key }) => key)).toEqual(['b', 'c', 'a'])
    expect(sketch.top(0)).toEqual([])
  })

  it('forgets everything when it is cleared', () => {
    const sketch = new TopK({ capacity: 1 })
    for (const key of ['a', 'b', 'c']) sketch.add(key)
    sketch.clear()
    expect(sketch.snapshot()).toEqual({ total: 0, missed: 0, entries: [] })
  })

  it.each([0, -1, 1.5, Number.NaN])('rejects %s as capacity and as amount', (number) => {
    const invalid = expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' })
    expect(() => new TopK({ capacity: number })).toThrow(invalid)
    const sketch = new TopK({ capacity: 1 })
    expect(() => sketch.add('a', number)).toThrow(invalid)
    expect(sketch.snapshot().total).toBe(0)
  })
})

describe('mergeTopK', () => {
  it('keeps the bounds of one sketch that had seen everything (property)', () => {
    fc.assert(
      fc.property(fc.array(streams, { maxLength: 4 }), capacities, (parts, capacity) => {
        const snapshots = parts.map((part) => sketchOf(part, capacity))
        expectPromises(mergeTopK(snapshots), parts.flat(), capacity)
        const stepwise = mergeTopK([mergeTopK(snapshots.slice(0, 1)), mergeTopK(snapshots.slice(1))])
        expect(stepwise).toEqual(mergeTopK(snapshots))
      }),
    )
  })

  it('takes as missed what each may have missed', () => {
    const one = { total: 10, missed: 2, entries: [{ key: 'a', count: 5, missed: 1 }] }
    const other = { total: 9, missed: 3, entries: [{ key: 'b', count: 6, missed: 0 }] }
    expect(mergeTopK([one, other])).toEqual({
      total: 19,
      missed: 5,
      entries: [
        { key: 'b', count: 6, missed: 2 },
        { key: 'a', count: 5, missed: 4 },
      ],
    })
  })
})
