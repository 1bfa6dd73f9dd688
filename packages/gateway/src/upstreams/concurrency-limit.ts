import type { Random } from '@sluice/core'
import { DEFAULTS, type UpstreamConfig } from '../config/gateway-config.ts'

/** One request that has ended. */
export interface ConcurrencySample {
  readonly startedMs: number
  /** From its start to the headers of the response; undefined: it failed. */
  readonly latencyMs: number | undefined
  /** Requests in flight before it ended, itself included. */
  readonly inFlight: number
}

/** How many requests an instance may have in flight. */
export interface ConcurrencyLimit {
  /** A whole number, 1 or more. */
  readonly limit: number
  /** Takes note of a request that has ended. */
  record(sample: ConcurrencySample, nowMs: number): void
}

/** The limit of one instance; undefined for `off`. */
export function createConcurrencyLimit(
  config: NonNullable<UpstreamConfig['concurrency']>,
  parts: { readonly nowMs: () => number; readonly random: Random },
): ConcurrencyLimit | undefined {
  const { mode = DEFAULTS.concurrencyMode, limit = FIRST_LIMIT } = config
  if (mode === 'off') return undefined
  if (mode === 'fixed') return { limit, record: () => undefined }
  const { max = Math.max(config.min ?? 0, DEFAULTS.concurrencyMax) } = config
  const { min = Math.min(max, DEFAULTS.concurrencyMin) } = config
  return new AdaptiveLimit({ first: limit, min, max, ...parts })
}

export interface AdaptiveLimitOptions {
  readonly first: number
  readonly min: number
  readonly max: number
  readonly nowMs: () => number
  readonly random: Random
}

/** Where an adaptive limit begins. */
const FIRST_LIMIT = 20

/** Minimum duration and number of samples of a window. */
const WINDOW_MS = 100
const LEAST_SAMPLES = 10
const MOST_SAMPLES = 256

/** The limit shrinks if latency is more than this multiple of the latency without a queue. */
const TOLERANCE = 1.5
/** The most that one window changes the limit downwards. */
const LEAST_GRADIENT = 0.5

/** How often latency without a queue is measured, on average, and with which part of the limit. */
const PROBE_EVERY_MS = 30_000
const PROBE_SHARE = 0.25

/**
 * A limit that follows the capacity of an instance, by latency alone.
 *
 * ```text
 *   gradient = clamp(1.5 x base / current, 0.5, 1)
 *   limit'   = clamp(limit x gradient + sqrt(limit), min, max)
 * ```
 *
 * `current` is the median latency of a window, `base` that of a probe: about every 30 seconds the limit is a quarter
 * for one window, so that no queue is left at the instance. Only requests that began after the last change of the limit
 * count, so a window never sees the queue of an earlier limit. The limit grows only if half of it was used.
 *
 * With capacity for C requests at a time, the limit settles between C and 1.5 C + sqrt(limit). The decision record
 * 2026-11-18-adaptive-concurrency has the derivation.
 */
export class AdaptiveLimit implements ConcurrencyLimit {
  readonly #options: AdaptiveLimitOptions
  readonly #latencies = new Float64Array(MOST_SAMPLES)
  #exact: number
  #baseMs = Number.POSITIVE_INFINITY
  #isProbing = false
  #probeAtMs: number
  /** Of the window, which began with the last change of the limit. */
  #windowMs: number
  #answered = 0
  #failed = 0
  #mostInFlight = 0

  constructor(options: AdaptiveLimitOptions) {
    this.#options = options
    this.#exact = clamp(options.first, options.min, options.max)
    const nowMs = options.nowMs()
    this.#windowMs = nowMs
    // Nothing is known of the latency without a queue yet.
    this.#isProbing = true
    this.#probeAtMs = nowMs + this.#drawProbeMs()
  }

  get limit(): number {
    const { min } = this.#options
    return this.#isProbing ? Math.max(min, Math.floor(this.#exact * PROBE_SHARE)) : Math.floor(this.#exact)
  }

  record({ startedMs, latencyMs, inFlight }: ConcurrencySample, nowMs: number): void {
    if (startedMs < this.#windowMs) return
    if (latencyMs === undefined) this.#failed++
    else this.#latencies[this.#answered++ % MOST_SAMPLES] = latencyMs
    if (inFlight > this.#mostInFlight) this.#mostInFlight = inFlight
    if (nowMs - this.#windowMs >= WINDOW_MS && this.#answered + this.#failed >= LEAST_SAMPLES) this.#endWindow(nowMs)
  }

  #endWindow(nowMs: number): void {
    const failsByHalf = this.#failed >= this.#answered
    const currentMs = failsByHalf ? Number.NaN : this.#median()
    if (this.#isProbing && !failsByHalf) {
      this.#baseMs = currentMs
      this.#isProbing = false
    } else if (!this.#isProbing) {
      if (currentMs < this.#baseMs) this.#baseMs = currentMs
      const gradient = failsByHalf ? LEAST_GRADIENT : clamp((TOLERANCE * this.#baseMs) / currentMs, LEAST_GRADIENT, 1)
      this.#change(this.#exact * gradient + Math.sqrt(this.#exact))
    }
    if (nowMs >= this.#probeAtMs) {
      this.#isProbing = true
      this.#probeAtMs = nowMs + this.#drawProbeMs()
    }
    this.#windowMs = nowMs
    this.#answered = 0
    this.#failed = 0
    this.#mostInFlight = 0
  }

  #change(next: number): void {
    const isUsed = this.#mostInFlight * 2 >= this.#exact
    if (next > this.#exact && !isUsed) return
    this.#exact = clamp(next, this.#options.min, this.#options.max)
  }

  #median(): number {
    const sorted = this.#latencies.slice(0, Math.min(this.#answered, MOST_SAMPLES)).sort()
    // A clock of coarse resolution may show 0.
    return Math.max(0.001, sorted[sorted.length >> 1]!)
  }

  #drawProbeMs(): number {
    return PROBE_EVERY_MS * (0.75 + this.#options.random.nextUint32() / 2 ** 33)
  }
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value))
}
