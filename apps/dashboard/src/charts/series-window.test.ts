import { describe, expect, it } from 'vitest'
import { SeriesWindow } from './series-window.ts'

function pointsOf(window: SeriesWindow): number[][] {
  const [times, ...values] = window.view()
  return Array.from(times, (time, index) => [time, ...values.map((series) => series[index] ?? Number.NaN)])
}

describe('SeriesWindow', () => {
  it('keeps the newest points, however many come', () => {
    const window = new SeriesWindow(4, 2)
    for (let index = 1; index <= 23; index += 1) {
      window.set(index * 10, [index, -index])
      const first = Math.max(1, index - 3)
      const expected = Array.from({ length: index - first + 1 }, (_, offset) => first + offset)
      expect(pointsOf(window)).toEqual(expected.map((value) => [value * 10, value, -value]))
    }
  })

  it('sets the newest point again, and takes no older one', () => {
    const window = new SeriesWindow(4, 1)
    window.set(10, [1])
    window.set(20, [2])
    window.set(20, [3])
    window.set(10, [9])
    expect(pointsOf(window)).toEqual([
      [10, 1],
      [20, 3],
    ])
  })

  it('finds the point of an instant', () => {
    const window = new SeriesWindow(8, 1)
    for (const atMs of [10, 20, 30]) window.set(atMs, [atMs / 10])
    expect([5, 10, 19, 20, 99].map((atMs) => window.indexAt(atMs))).toEqual([-1, 0, 0, 1, 2])
    expect([-1, 0, 2, 3].map((index) => window.valueAt(0, index))).toEqual([Number.NaN, 1, 3, Number.NaN])
  })

  it('ends the span of a point where the next begins, and the newest after as long as the one before', () => {
    const window = new SeriesWindow(3, 1)
    window.set(7, [1])
    expect(window.endOf(0)).toBe(1007)
    for (const atMs of [10, 30, 40]) window.set(atMs, [1])
    expect([0, 1, 2].map((index) => window.endOf(index))).toEqual([30, 40, 50])
  })

  it('writes into buffers that were made once', () => {
    const window = new SeriesWindow(4, 1)
    window.set(1, [1])
    const before = (window.view()[0] as Float64Array).buffer
    for (let index = 2; index < 50; index += 1) window.set(index, [index])
    expect((window.view()[0] as Float64Array).buffer).toBe(before)
  })

  it('shows what was not measured as null', () => {
    const window = new SeriesWindow(4, 2)
    window.set(1, [Number.NaN, 1])
    window.set(2, [5, 2])
    expect(window.view()[1]).toEqual([null, 5])
    expect(window.view()[2]).toEqual(Float64Array.of(1, 2))
    expect([window.highest(1), window.highest(2), new SeriesWindow(4, 1).highest(1)]).toEqual([5, 5, undefined])
  })

  it('is empty after it was cleared', () => {
    const window = new SeriesWindow(4, 1)
    window.set(1, [1])
    window.clear()
    expect([window.length, window.firstAtMs, window.lastAtMs]).toEqual([0, undefined, undefined])
  })
})
