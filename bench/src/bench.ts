/** What one candidate reached. */
export interface BenchResult {
  readonly name: string
  readonly opsPerSecond?: number
  readonly bytesPerKey?: number
  /** Half of the answers came within this time, and 99 of 100 within the other. */
  readonly p50Ms?: number
  readonly p99Ms?: number
  /** CPU time per call of the process that calls, and of Redis, in microseconds. */
  readonly clientMicros?: number
  readonly serverMicros?: number
}

/** What a bench found. Everything in it was measured in one run on one machine, so only the ratios travel. */
export interface BenchReport {
  readonly id: string
  readonly results: readonly BenchResult[]
  /** What is compared with the floors, by the same names. */
  readonly ratios: Readonly<Record<string, number>>
  /** The least (or, for bytes, the most) each ratio may be. */
  readonly floor: Readonly<Record<string, number>>
  /** The most each ratio may be. */
  readonly ceiling?: Readonly<Record<string, number>>
  /** True when every floor is met and every count was exact. */
  readonly ok: boolean
  /** What else there is to say, for people. */
  readonly notes: readonly string[]
}

/** A benchmark, selected by name. */
export interface Bench {
  readonly id: string
  readonly title: string
  run(progress: (line: string) => void): Promise<BenchReport>
}
