import type { NowMs, RatioCounts } from '@sluice/runtime'
import { bucketQuantile, RollingHistogram, RollingRatio } from '@sluice/runtime'
import type { ThreadGroup } from '../thread-messages/message-bus.ts'
import type { AlertRule, AlertRuleName } from './alert-rule.ts'

/** Records what alerts are about, in one thread. */
export interface AlertSignals {
  /** A check was decided. */
  /** `amount`: number of checks. Default: 1. */
  recordCheck(denied: boolean, amount?: number): void
  /**
   * A store call ended, or was skipped because the store is known to be unreachable, which counts as a failure.
   * `micros`: its duration in microseconds; 0 for a skipped call, which is not counted as latency.
   */
  recordStoreCall(micros: number, failed: boolean): void
}

/** Signals of one thread, or of several together: plain data. */
export interface SignalSnapshot {
  /** Checks in the window of `denial-rate`; `hits` were denied. */
  readonly checks: RatioCounts
  /** Store calls in the window of `store-errors`; `hits` failed. */
  readonly storeCalls: RatioCounts
  /** Store calls in the window of `store-latency` by duration, see {@link latencyBoundsMs}. */
  readonly storeLatency: readonly number[]
  /** Age of the active rules behind the newest ones. */
  readonly configLagMs: number
}

/** Options of {@link SignalRecorder}. */
export interface SignalRecorderParts {
  /** Enabled rules; nothing is recorded for others. The same in all threads. */
  readonly rules: readonly AlertRule[]
  readonly nowMs: NowMs
  /** Age of the active rules of this thread; read for each snapshot. */
  readonly configLagMs: () => number
}

const MICROS_PER_MS = 1000

const NOTHING: RatioCounts = { hits: 0, total: 0 }

/** Finer in the range of a healthy store. */
const BOUNDS_MS: readonly number[] = [
  0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 150, 250, 500, 1000, 2500, 5000,
  10_000, 30_000, 60_000,
]

/** Bucket bounds of durations. The threshold is one of them, so that "above" is exact. */
export function latencyBoundsMs(threshold: number): readonly number[] {
  return [...new Set([...BOUNDS_MS, threshold])].sort((one, other) => one - other)
}

/** Counts over the windows of the rules, in constant memory. */
export class SignalRecorder implements AlertSignals {
  readonly #readClock: NowMs
  readonly #configLagMs: () => number
  readonly #checks: RollingRatio | undefined
  readonly #storeCalls: RollingRatio | undefined
  readonly #storeLatency: RollingHistogram | undefined
  /** Read once per call, not once per counter. */
  #nowMs: number

  constructor({ rules, nowMs, configLagMs }: SignalRecorderParts) {
    this.#readClock = nowMs
    this.#nowMs = nowMs()
    this.#configLagMs = configLagMs
    const read = (): number => this.#nowMs
    const ratioOf = (name: AlertRuleName): RollingRatio | undefined => {
      const rule = ruleOf(rules, name)
      return rule === undefined ? undefined : new RollingRatio({ windowMs: rule.windowMs, nowMs: read })
    }
    this.#checks = ratioOf('denial-rate')
    this.#storeCalls = ratioOf('store-errors')
    const latency = ruleOf(rules, 'store-latency')
    if (latency !== undefined) {
      const { threshold, windowMs } = latency
      this.#storeLatency = new RollingHistogram({ windowMs, nowMs: read, bounds: latencyBoundsMs(threshold) })
    }
  }

  recordCheck(denied: boolean, amount?: number): void {
    this.#nowMs = this.#readClock()
    this.#checks?.add(denied, amount)
  }

  recordStoreCall(micros: number, failed: boolean): void {
    this.#nowMs = this.#readClock()
    this.#storeCalls?.add(failed)
    if (micros > 0) this.#storeLatency?.observe(micros / MICROS_PER_MS)
  }

  snapshot(): SignalSnapshot {
    this.#nowMs = this.#readClock()
    return {
      checks: this.#checks?.counts() ?? NOTHING,
      storeCalls: this.#storeCalls?.counts() ?? NOTHING,
      storeLatency: Array.from(this.#storeLatency?.counts() ?? []),
      configLagMs: this.#configLagMs(),
    }
  }
}

/** Signals of several threads: calls add up, the oldest rules count. */
export function mergeSignals(snapshots: readonly SignalSnapshot[]): SignalSnapshot {
  const buckets = Math.max(0, ...snapshots.map(({ storeLatency }) => storeLatency.length))
  return {
    checks: sumOf(snapshots.map(({ checks }) => checks)),
    storeCalls: sumOf(snapshots.map(({ storeCalls }) => storeCalls)),
    storeLatency: Array.from({ length: buckets }, (_, bucket) =>
      snapshots.reduce((sum, { storeLatency }) => sum + (storeLatency[bucket] ?? 0), 0),
    ),
    configLagMs: Math.max(0, ...snapshots.map(({ configLagMs }) => configLagMs)),
  }
}

function ruleOf(rules: readonly AlertRule[], name: AlertRuleName): AlertRule | undefined {
  return rules.find((rule) => rule.name === name)
}

function sumOf(counts: readonly RatioCounts[]): RatioCounts {
  return {
    hits: counts.reduce((sum, { hits }) => sum + hits, 0),
    total: counts.reduce((sum, { total }) => sum + total, 0),
  }
}

/** Messages about signals. */
export interface SignalMessages {
  'alerts.signals': () => SignalSnapshot
}

/** Records the signals of this thread and shares them with the main thread. Call it once per thread. */
export function threadSignals(
  threads: Pick<ThreadGroup<SignalMessages>, 'handle'>,
  parts: SignalRecorderParts,
): SignalRecorder {
  const recorder = new SignalRecorder(parts)
  threads.handle('alerts.signals', () => recorder.snapshot())
  return recorder
}

const QUANTILE = 0.99

const MS_PER_SECOND = 1000

/** Value of a rule in its unit; undefined if there were too few calls. */
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
