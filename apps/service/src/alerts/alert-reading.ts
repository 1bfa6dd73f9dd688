import type { RatioCounts } from '@sluice/runtime'
import { bucketQuantile } from '@sluice/runtime'
import type { AlertRule } from './alert-rule.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { latencyBoundsMs } from './alert-signals.ts'

const QUANTILE = 0.99

const MS_PER_SECOND = 1000

/** What a rule watches, in its unit; undefined when too few calls were made to tell. */
export function readingOf({ name, threshold, leastSamples }: AlertRule, signals: SignalSnapshot): number | undefined {
  switch (name) {
    case 'store-latency': {
      const { storeLatency } = signals
      const calls = storeLatency.reduce((sum, count) => sum + count, 0)
      return calls < leastSamples ? undefined : bucketQuantile(latencyBoundsMs(threshold), storeLatency, QUANTILE)
    }
    case 'denial-rate':
      return shareOf(signals.checks, leastSamples)
    case 'store-errors':
      return shareOf(signals.storeCalls, leastSamples)
    case 'config-lag':
      return signals.configLagMs / MS_PER_SECOND
  }
}

function shareOf({ hits, total }: RatioCounts, leastSamples: number): number | undefined {
  return total < leastSamples || total === 0 ? undefined : hits / total
}

/** What is the matter when `value` is above the threshold of `rule`, in words. */
export function summaryOf({ name, threshold, windowMs }: AlertRule, value: number): string {
  const window = `${windowMs / MS_PER_SECOND} seconds`
  switch (name) {
    case 'store-latency':
      return `the p99 of the calls of the store in the last ${window} is ${short(value)} ms, which is above ${short(threshold)} ms`
    case 'denial-rate':
      return `${percent(value)} of the checks of the last ${window} were refused, which is above ${percent(threshold)}`
    case 'store-errors':
      return `${percent(value)} of the calls of the store in the last ${window} failed, which is above ${percent(threshold)}`
    case 'config-lag':
      return `the rules in force have been out of date for ${short(value)} seconds, which is above ${short(threshold)} seconds`
  }
}

function percent(share: number): string {
  return `${short(share * 100)} %`
}

/** Four digits that say something. */
function short(value: number): string {
  return String(Number(value.toPrecision(4)))
}
