import { MetricRegistry } from '@sluice/runtime'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ServiceMessages } from '../service-context.ts'
import { SingleThread } from '../thread-messages/message-bus.ts'
import type { ThreadReport } from './instrument.ts'
import type { ProcessReadings } from './metrics/process-metrics.ts'
import { askReport, collectReports, MetricsAggregator, shareReports } from './metrics-aggregator.ts'
import { createScene, numbersOf } from './observability.test.support.ts'

const PROCESS: ProcessReadings = {
  startedAt: 1_700_000_000_000,
  cpuMicros: () => 2_500_000,
  residentBytes: () => 4096,
  firingAlerts: () => 2,
  webhookCounts: () => ({ pending: 1, dead: 2, delivered: 3, failed: 4, failedTries: 5, lost: 6 }),
}

/** A thread with one counter and one gauge. */
function thread(index: number, name: string) {
  const metrics = new MetricRegistry()
  const counter = metrics.counter({ name: 'a_total', help: 'A.' }).labels()
  const gauge = metrics.gauge({ name: 'b', help: 'B.', merge: 'sum' }).labels()
  gauge.set(1)
  const top = { startedAt: index, dimensions: [] }
  return { counter, gauge, report: () => ({ metrics: metrics.snapshot(), top, index, name }) }
}

describe('MetricsAggregator', () => {
  it('adds up what threads say, and what the process says once', () => {
    const aggregator = new MetricsAggregator(PROCESS)
    const [one, other] = [thread(0, 'x'), thread(1, 'y')]
    one.counter.inc(3)
    other.counter.inc(4)
    const { metrics, top } = aggregator.merge([one.report(), other.report()])
    expect(numbersOf(metrics, 'a_total')).toEqual({ '': 7 })
    expect(numbersOf(metrics, 'b')).toEqual({ '': 2 })
    expect(top.startedAt).toBe(0)
    expect(numbersOf(metrics, 'process_cpu_seconds_total')).toEqual({ '': 2.5 })
    expect(numbersOf(metrics, 'process_resident_memory_bytes')).toEqual({ '': 4096 })
    expect(numbersOf(metrics, 'process_start_time_seconds')).toEqual({ '': 1_700_000_000 })
    expect(numbersOf(metrics, 'sluice_alerts_firing')).toEqual({ '': 2 })
    expect(numbersOf(aggregator.merge([]).metrics, 'process_cpu_seconds_total')).toEqual({ '': 2.5 })
  })

  it('has no sample of a reading that the system does not give', () => {
    const aggregator = new MetricsAggregator({ ...PROCESS, residentBytes: () => undefined })
    const { metrics } = aggregator.merge([])
    expect(numbersOf(metrics, 'process_resident_memory_bytes')).toEqual({})
    expect(numbersOf(metrics, 'process_cpu_seconds_total')).toEqual({ '': 2.5 })
  })

  it('goes by the last report of a thread that does not answer', () => {
    const aggregator = new MetricsAggregator(PROCESS)
    const [one, other] = [thread(0, 'x'), thread(1, 'y')]
    one.counter.inc(3)
    other.counter.inc(4)
    aggregator.merge([one.report(), other.report()])
    one.counter.inc(1)
    other.counter.inc(1)
    expect(numbersOf(aggregator.merge([one.report()]).metrics, 'a_total')).toEqual({ '': 8 })
    expect(numbersOf(aggregator.merge([one.report(), other.report()]).metrics, 'a_total')).toEqual({ '': 9 })
  })

  it('remembers what a thread counted that another has replaced, and nothing of how it stood', () => {
    const aggregator = new MetricsAggregator(PROCESS)
    const ended = thread(0, 'x')
    ended.counter.inc(3)
    aggregator.merge([ended.report()])
    const successor = thread(0, 'z')
    successor.counter.inc(1)
    const { metrics } = aggregator.merge([successor.report()])
    expect(numbersOf(metrics, 'a_total')).toEqual({ '': 4 })
    expect(numbersOf(metrics, 'b')).toEqual({ '': 1 })
  })

  it('never lets a counter go down, whichever threads answer, end and come (property)', () => {
    const step = fc.record({
      index: fc.nat({ max: 2 }),
      amount: fc.nat({ max: 5 }),
      ends: fc.boolean(),
      answers: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const aggregator = new MetricsAggregator(PROCESS)
        let names = 0
        const threads = [0, 1, 2].map((index) => thread(index, `t${names++}`))
        let total = 0
        let told = 0
        for (const { index, amount, ends, answers } of steps) {
          threads[index]!.counter.inc(amount)
          total += amount
          // What a thread counted since its last report is lost with it.
          if (ends) {
            aggregator.merge([threads[index]!.report()])
            threads[index] = thread(index, `t${names++}`)
          }
          const reports = answers ? threads.map((one) => one.report()) : []
          const now = aggregator.merge(reports).metrics.families.find(({ name }) => name === 'a_total')?.samples[0] as
            | { readonly value: number }
            | undefined
          expect(now?.value ?? 0).toBeGreaterThanOrEqual(told)
          told = now?.value ?? 0
          if (answers) expect(told).toBe(total)
        }
      }),
    )
  })
})

describe('askReport', () => {
  it('returns the report of the process in any thread', async () => {
    const threads = new SingleThread<ServiceMessages>()
    const { instrument, engine } = createScene({
      ruleSet: { rules: [{ resource: '/data', dimension: 'user', limit: 1, window: '1m' }] },
    })
    shareReports(threads, 'only', (): ThreadReport => instrument.report())
    collectReports(threads, PROCESS)
    engine.check({ resource: '/data', user: 'ann' })
    engine.check({ resource: '/data', user: 'ann' })
    const report = await askReport(threads)
    expect(numbersOf(report.metrics, 'ratelimit_checks_total')).toEqual({
      'user /data allowed': 1,
      'user /data denied': 1,
    })
    expect(report.top.dimensions.map(({ dimension }) => dimension)).toEqual(['user'])
    // Everything can be sent from thread to thread.
    expect(structuredClone(report)).toEqual(report)
  })
})
