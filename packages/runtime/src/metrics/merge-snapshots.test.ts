import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mergeSnapshots } from './merge-snapshots.ts'
import { MetricRegistry } from './metric-registry.ts'
import type { GaugeMerge } from './metrics-snapshot.ts'

const help = 'Help.'

function gauges(merge: GaugeMerge, numbers: readonly (number | undefined)[]): unknown {
  const snapshots = numbers.map((number) => {
    const registry = new MetricRegistry()
    const gauge = registry.gauge({ name: 'g', help, merge })
    if (number !== undefined) gauge.labels().set(number)
    return registry.snapshot()
  })
  const family = mergeSnapshots(snapshots).families.find(({ name }) => name === 'g')
  return family?.samples.map((sample) => 'value' in sample && sample.value)
}

describe('mergeSnapshots', () => {
  it.each([
    ['sum', [6]],
    ['max', [5]],
    ['min', [-1]],
    ['last', [2]],
  ] as const)('merges gauges by %s', (merge, expected) => {
    expect(gauges(merge, [undefined, 5, -1, 2, undefined])).toEqual(expected)
    expect(gauges(merge, [undefined])).toEqual([])
  })

  it('is the snapshot of one registry that had seen everything, however it is spread (property)', () => {
    const event = fc.record({
      thread: fc.nat({ max: 3 }),
      key: fc.constantFrom('a', 'b', 'c'),
      value: fc.nat({ max: 20 }),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const registries = Array.from({ length: 5 }, () => {
          const registry = new MetricRegistry()
          const counter = registry.counter({ name: 'c_total', help, labels: ['key'] })
          const alsoAs = { name: 'h_seconds', divisor: 1000 }
          const histogram = registry.histogram({ name: 'h_ms', help, labels: ['key'], bounds: [5, 10], alsoAs })
          return { registry, counter, histogram }
        })
        const [all, ...threads] = registries
        for (const { thread, key, value } of events.toSorted((one, other) => one.thread - other.thread)) {
          for (const { counter, histogram } of [all!, threads[thread]!]) {
            counter.labels({ key }).inc(value)
            histogram.labels({ key }).observe(value)
          }
        }
        const snapshots = threads.map(({ registry }) => registry.snapshot())
        expect(mergeSnapshots(snapshots)).toEqual(all!.registry.snapshot())
        expect(mergeSnapshots([mergeSnapshots(snapshots.slice(0, 2)), ...snapshots.slice(2)])).toEqual(
          mergeSnapshots(snapshots),
        )
      }),
    )
  })

  it('keeps metrics that only some have, in the order in which they come', () => {
    const snapshots = [
      ['a_total', 'b_total'],
      ['c_total', 'b_total'],
    ].map((names) => {
      const registry = new MetricRegistry()
      for (const name of names) registry.counter({ name, help }).labels().inc()
      return registry.snapshot()
    })
    const merged = mergeSnapshots(snapshots).families.slice(1)
    expect(
      merged.map(({ name, samples }) => [name, samples.map((sample) => 'value' in sample && sample.value)]),
    ).toEqual([
      ['a_total', [1]],
      ['b_total', [2]],
      ['c_total', [1]],
    ])
    expect(mergeSnapshots([])).toEqual({ families: [] })
  })

  it.each([
    ['the labels', (registry: MetricRegistry) => registry.gauge({ name: 'a', help, merge: 'sum', labels: ['key'] })],
    ['the merge', (registry: MetricRegistry) => registry.gauge({ name: 'a', help, merge: 'max' })],
    ['the help', (registry: MetricRegistry) => registry.gauge({ name: 'a', help: 'Other.', merge: 'sum' })],
    ['the type', (registry: MetricRegistry) => registry.histogram({ name: 'a', help, bounds: [1] })],
  ])('rejects snapshots that differ in %s of a metric', (_name, declare) => {
    const [one, other] = [new MetricRegistry(), new MetricRegistry()]
    one.gauge({ name: 'a', help, merge: 'sum' })
    declare(other)
    expect(() => mergeSnapshots([one.snapshot(), other.snapshot()])).toThrow(
      expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }),
    )
  })
})
