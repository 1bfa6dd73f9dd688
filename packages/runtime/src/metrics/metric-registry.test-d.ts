import { expectTypeOf } from 'vitest'
import type { Counter, CounterSeries } from './metric-counter.ts'
import { MetricRegistry } from './metric-registry.ts'

const registry = new MetricRegistry()

const plain = registry.counter({ name: 'plain_total', help: 'Without labels.' })
expectTypeOf(plain).toEqualTypeOf<Counter<[]>>()
expectTypeOf(plain.labels()).toEqualTypeOf<CounterSeries>()
// @ts-expect-error: it has no labels
plain.labels({ path: '/' })

const calls = registry.counter({
  name: 'calls_total',
  help: 'With an open and a closed label.',
  labels: ['path', { name: 'result', values: ['ok', 'bad'] }],
})
expectTypeOf(calls.labels).parameters.toEqualTypeOf<
  [values: { readonly path: string; readonly result: 'ok' | 'bad' }]
>()
// @ts-expect-error: labels are missing
calls.labels()
// @ts-expect-error: a label is missing
calls.labels({ path: '/' })
// @ts-expect-error: the label does not have this value
calls.labels({ path: '/', result: 'odd' })
// @ts-expect-error: there is no such label
calls.labels({ path: '/', result: 'ok', method: 'GET' })
