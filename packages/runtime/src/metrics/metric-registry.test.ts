import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MetricOptions } from './metric-definition.ts'
import { MetricRegistry } from './metric-registry.ts'
import type { HistogramFamily, MetricFamily } from './metrics-snapshot.ts'

const help = 'Help.'
const code = 'SLUICE_RUNTIME_INVALID_OPTION'
const invalid = expect.objectContaining({ code })

function familyOf(registry: MetricRegistry, name: string): MetricFamily {
  return registry.snapshot().families.find((family) => family.name === name)!
}

/** The numbers of a counter or gauge by their label values. */
function numbersOf(registry: MetricRegistry, name: string): Record<string, unknown> {
  const samples = familyOf(registry, name).samples
  return Object.fromEntries(samples.map(({ values, ...rest }) => [values.join(' '), 'value' in rest && rest.value]))
}

describe('counter', () => {
  it('adds, and gives the same handle for the same values', () => {
    const registry = new MetricRegistry()
    const counter = registry.counter({ name: 'calls_total', help, labels: ['path', 'result'] })
    const handle = counter.labels({ path: '/a', result: 'ok' })
    handle.inc()
    handle.inc(2.5)
    handle.inc(0)
    expect(counter.labels({ result: 'ok', path: '/a' })).toBe(handle)
    counter.labels({ path: 'ok', result: '/a' }).inc()
    expect(numbersOf(registry, 'calls_total')).toEqual({ '/a ok': 3.5, 'ok /a': 1 })
  })

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('does not add %s', (amount) => {
    const series = new MetricRegistry().counter({ name: 'calls_total', help }).labels()
    expect(() => series.inc(amount)).toThrow(invalid)
    expect(series.value).toBe(0)
  })

  it('keeps all combinations apart that differ in any value (property)', () => {
    const pair = fc.record({ one: fc.string({ maxLength: 3 }), other: fc.string({ maxLength: 3 }) })
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 40 }), (pairs) => {
        const registry = new MetricRegistry()
        const counter = registry.counter({ name: 'a_total', help, labels: ['one', 'other'] })
        const expected = new Map<string, number>()
        for (const { one, other } of pairs) {
          counter.labels({ one, other }).inc()
          const key = JSON.stringify([one, other])
          expected.set(key, (expected.get(key) ?? 0) + 1)
        }
        const { samples } = familyOf(registry, 'a_total')
        const counted = samples.map((sample) => [JSON.stringify(sample.values), 'value' in sample && sample.value])
        expect(counted).toEqual([...expected])
      }),
    )
  })

  it.each([
    ['a missing label', { path: '/a' }],
    ['an unknown label', { path: '/a', reslut: 'ok' }],
    ['one label too many', { path: '/a', result: 'ok', method: 'GET' }],
    ['a value that is no text', { path: '/a', result: 5 }],
    ['a value that is missing', { path: '/a', result: undefined }],
  ])('rejects %s, also when a series is near', (_name, values) => {
    const counter = new MetricRegistry().counter({ name: 'a_total', help, labels: ['path', 'result'] })
    counter.labels({ path: '/a', result: 'ok' }).inc()
    expect(() => counter.labels(values as never)).toThrow(invalid)
  })
})

describe('a flood of label values', () => {
  it('shows in the overflow counter when the program itself counts it as other', () => {
    const registry = new MetricRegistry()
    const counter = registry.counter({ name: 'a_total', help: 'A.', labels: ['one'] })
    registry.counter({ name: 'b_total', help: 'B.', labels: ['one'] })
    counter.countOverflow()
    counter.countOverflow()
    expect(numbersOf(registry, 'sluice_metrics_overflow_total')).toEqual({ a_total: 2, b_total: 0 })
  })

  it('is counted as other, and shows in the overflow counter', () => {
    const registry = new MetricRegistry()
    const counter = registry.counter({ name: 'a_total', help, labels: ['key'], mostSeries: 3 })
    for (let n = 0; n < 1000; n++) counter.labels({ key: `k${n}` }).inc()
    counter.labels({ key: 'k1' }).inc()
    expect(numbersOf(registry, 'a_total')).toEqual({ k0: 1, k1: 2, k2: 1, other: 997 })
    expect(numbersOf(registry, 'sluice_metrics_overflow_total')).toEqual({ a_total: 997 })
  })

  it('is kept at 1000 series when nothing else is said', () => {
    const registry = new MetricRegistry()
    const counter = registry.counter({ name: 'a_total', help, labels: ['key'] })
    for (let n = 0; n < 5000; n++) counter.labels({ key: `k${n}` }).inc()
    expect(familyOf(registry, 'a_total').samples).toHaveLength(1001)
    expect(numbersOf(registry, 'a_total')['other']).toBe(4000)
  })

  it('leaves closed labels as they are', () => {
    const registry = new MetricRegistry()
    const labels = [{ name: 'result', values: ['ok', 'bad'] }, 'path'] as const
    const counter = registry.counter({ name: 'a_total', help, labels, mostSeries: 2 })
    for (const path of ['/a', '/b', '/c', '/d']) counter.labels({ result: 'ok', path }).inc()
    counter.labels({ result: 'bad', path: '/a' }).inc()
    expect(numbersOf(registry, 'a_total')).toEqual({ 'ok /a': 1, 'ok /b': 1, 'ok other': 2, 'bad other': 1 })
    expect(numbersOf(registry, 'sluice_metrics_overflow_total')).toEqual({ a_total: 3 })
  })

  it('counts a value that a closed label does not know as other', () => {
    const registry = new MetricRegistry()
    const counter = registry.counter({ name: 'a_total', help, labels: [{ name: 'result', values: ['ok'] }] })
    for (const result of ['ok', 'odd', 'odder']) counter.labels({ result: result as 'ok' }).inc()
    expect(numbersOf(registry, 'a_total')).toEqual({ ok: 1, other: 2 })
    expect(numbersOf(registry, 'sluice_metrics_overflow_total')).toEqual({ a_total: 2 })
  })

  it('never makes more series than declared, and loses no count (property)', () => {
    const call = fc.record({
      path: fc.integer({ min: 0, max: 30 }).map(String),
      result: fc.constantFrom('ok', 'bad', 'odd'),
    })
    fc.assert(
      fc.property(fc.array(call, { maxLength: 200 }), fc.integer({ min: 1, max: 10 }), (calls, mostSeries) => {
        const registry = new MetricRegistry()
        const labels = ['path', { name: 'result', values: ['ok', 'bad'] }] as const
        const counter = registry.counter({ name: 'a_total', help, labels, mostSeries })
        for (const { path, result } of calls) counter.labels({ path, result: result as 'ok' }).inc()
        const numbers = Object.values(numbersOf(registry, 'a_total')) as number[]
        expect(numbers.length).toBeLessThanOrEqual(mostSeries + 3)
        expect(numbers.reduce((sum, number) => sum + number, 0)).toBe(calls.length)
      }),
    )
  })

  it('counts long values by their first 200 characters', () => {
    const registry = new MetricRegistry()
    const counter = registry.counter({ name: 'a_total', help, labels: ['key'] })
    counter.labels({ key: 'x'.repeat(200) }).inc()
    counter.labels({ key: `${'x'.repeat(200)}y` }).inc()
    expect(numbersOf(registry, 'a_total')).toEqual({ ['x'.repeat(200)]: 2 })
  })
})

describe('gauge', () => {
  it('rises and falls', () => {
    const registry = new MetricRegistry()
    const series = registry.gauge({ name: 'open', help, merge: 'sum' }).labels()
    series.set(10)
    series.add(-3.5)
    expect(numbersOf(registry, 'open')).toEqual({ '': 6.5 })
    for (const value of [Number.NaN, Number.NEGATIVE_INFINITY]) {
      expect(() => series.set(value)).toThrow(invalid)
      expect(() => series.add(value)).toThrow(invalid)
    }
    expect(series.value).toBe(6.5)
  })

  it('can be brought up to date before each snapshot', () => {
    const registry = new MetricRegistry()
    const series = registry.gauge({ name: 'size', help, merge: 'max' }).labels()
    let size = 1
    const update = (): void => series.set(size)
    const end = registry.beforeSnapshot(update)
    const endOther = registry.beforeSnapshot(update)
    expect(numbersOf(registry, 'size')).toEqual({ '': 1 })
    end()
    size = 2
    expect(numbersOf(registry, 'size')).toEqual({ '': 2 })
    endOther()
    size = 3
    expect(numbersOf(registry, 'size')).toEqual({ '': 2 })
  })
})

describe('histogram', () => {
  it('counts each observation in the first bucket whose bound is not below it', () => {
    const registry = new MetricRegistry()
    const series = registry.histogram({ name: 'took_ms', help, bounds: [1, 2, 5] }).labels()
    for (const value of [0, 1, 1.0001, 2, 5, 5.0001, 1e9]) series.observe(value)
    const family = familyOf(registry, 'took_ms') as HistogramFamily
    expect(family.samples[0]?.counts).toEqual([2, 2, 1, 2])
    expect(family.samples[0]?.sum).toBeCloseTo(1e9 + 14.0002, 6)
    expect(series.quantile(0.5)).toBe(2)
  })

  it.each([-0.1, Number.NaN, Number.POSITIVE_INFINITY])('does not observe %s', (value) => {
    const registry = new MetricRegistry()
    const series = registry.histogram({ name: 'took_ms', help, bounds: [1] }).labels()
    expect(() => series.observe(value)).toThrow(invalid)
    expect((familyOf(registry, 'took_ms') as HistogramFamily).samples).toEqual([{ values: [], counts: [0, 0], sum: 0 }])
  })

  it.each([
    [[]],
    [[1, 1]],
    [[2, 1]],
    [[Number.NaN]],
    [[1, Number.POSITIVE_INFINITY]],
    [Array.from({ length: 201 }, (_, n) => n)],
  ])('rejects the bounds %j', (bounds) => {
    expect(() => new MetricRegistry().histogram({ name: 'a', help, bounds })).toThrow(invalid)
  })
})

describe('a declaration', () => {
  const counter = (options: Partial<MetricOptions>) => (registry: MetricRegistry) =>
    registry.counter({ name: 'a_total', help, ...options })
  it.each([
    ['no name', counter({ name: '' })],
    ['a name with a space', counter({ name: 'a b_total' })],
    ['a name that begins with a digit', counter({ name: '1_total' })],
    ['a counter without _total', counter({ name: 'a' })],
    ['a gauge with _total', (registry: MetricRegistry) => registry.gauge({ name: 'a_total', help, merge: 'sum' })],
    ['no help', counter({ help: '' })],
    ['a label with a dash', counter({ labels: ['a-b'] })],
    ['a label kept for programs', counter({ labels: ['__a'] })],
    ['the label of bounds', counter({ labels: ['le'] })],
    ['a label twice', counter({ labels: ['a', { name: 'a', values: ['b'] }] })],
    ['a closed label without values', counter({ labels: [{ name: 'a', values: [] }] })],
    ['no series', counter({ mostSeries: 0 })],
    ['half a series', counter({ mostSeries: 1.5 })],
    ['an unknown merge', (registry: MetricRegistry) => registry.gauge({ name: 'a', help, merge: 'avg' as never })],
    [
      'a second unit that is none',
      (registry: MetricRegistry) =>
        registry.histogram({ name: 'a', help, bounds: [1], alsoAs: { name: 'b', divisor: Number.NaN } }),
    ],
  ])('with %s is rejected', (_name, declare) => {
    expect(() => declare(new MetricRegistry())).toThrow(invalid)
  })

  it.each([
    ['twice the same', 'a_total', 'a_total'],
    ['a gauge named like the counter in OpenMetrics', 'a_total', 'a'],
    ['a gauge named like a sample of a histogram', 'h', 'h_sum'],
    ['a histogram with a sample named like a gauge', 'h_count', 'h'],
    ['the second unit of a histogram', 'h_seconds', 'h'],
    ['the overflow counter', 'sluice_metrics_overflow_total', undefined],
  ])('that takes a name that is taken is rejected: %s', (_name, ...names) => {
    const registry = new MetricRegistry()
    const declare = (name: string): unknown => {
      if (name.endsWith('_total')) return registry.counter({ name, help })
      if (name !== 'h') return registry.gauge({ name, help, merge: 'sum' })
      return registry.histogram({ name, help, bounds: [1], alsoAs: { name: 'h_seconds', divisor: 1000 } })
    }
    expect(() => {
      for (const name of names) if (name !== undefined) declare(name)
    }).toThrow(invalid)
  })
})

describe('snapshot', () => {
  it('does not change afterwards, and can be sent to another thread', () => {
    const registry = new MetricRegistry()
    const counter = registry.counter({ name: 'a_total', help, labels: ['key'] })
    const histogram = registry.histogram({ name: 'h', help, bounds: [1] })
    counter.labels({ key: 'k' }).inc()
    histogram.labels().observe(1)
    const before = registry.snapshot()
    const copy = structuredClone(before)
    counter.labels({ key: 'k' }).inc()
    counter.labels({ key: 'l' }).inc()
    histogram.labels().observe(1)
    expect(before).toEqual(copy)
    expect(JSON.parse(JSON.stringify(copy))).toEqual(copy)
  })
})
