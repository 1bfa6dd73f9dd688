import type { NowMs } from './clock-and-random.ts'
import { requireInteger, requireKnown } from './option-range.ts'
import { describeValue, RuntimeError } from './runtime-error.ts'
import {
  HIGH,
  LOW,
  MAX_NODE_PART,
  MAX_SEQUENCE,
  MAX_SNOWFLAKE_MS,
  packHigh,
  packLow,
  SNOWFLAKE_EPOCH_MS,
} from './snowflake-id.ts'

/** Options of {@link SnowflakeGenerator}. */
export interface SnowflakeOptions {
  /** 0 to 31. */
  readonly datacenter: number
  /** 0 to 31. Generators that run at the same time must differ in it or in `datacenter`. */
  readonly machine: number
  /** The clock. It must advance by itself, because the generator waits for the next millisecond on it. */
  readonly nowMs: NowMs
  /**
   * How far the clock may go back before calls fail, and how long a call may block then, in milliseconds; 0 to 1000.
   * Default: 10.
   */
  readonly maxBackwardsMs?: number | undefined
}

const DEFAULT_MAX_BACKWARDS_MS = 10
const MOST_AT_ONCE = 1_000_000

// A large part of a second of reading a real clock. A clock that stands still for so long will not advance at all (a
// fake one in a test, say), and an error is better than a process that hangs.
const MOST_EQUAL_READS = 2 ** 24

/**
 * Generates unique, increasing ids of 63 bits; see {@link decodeSnowflake} for their parts.
 *
 * Every id is greater than the previous one of the same generator. A generator makes at most 4096 ids per millisecond;
 * after that, the call busy-waits for the next millisecond and blocks the thread (under 1 ms on a normal clock).
 *
 * If the clock goes back by up to `maxBackwardsMs`, ids continue with the last millisecond used, and a call waits as
 * above when its 4096 are used up. If it goes back further, calls throw `SLUICE_RUNTIME_CLOCK_BACKWARDS` until the
 * clock is near enough again. A generator knows nothing of an earlier process: do not start one with the same numbers
 * before the clock has passed the last id of the previous one.
 *
 * Other errors of `next`, `nextString` and `take`: `SLUICE_RUNTIME_CLOCK_OUT_OF_RANGE` before 2010-11-04 and after
 * 2080-07-10, `SLUICE_RUNTIME_CLOCK_STALLED` if a wait does not end, `SLUICE_RUNTIME_INVALID_PORT` if the clock returns
 * no number. The generator stays usable after any of them.
 */
export class SnowflakeGenerator {
  readonly #node: number
  readonly #nowMs: NowMs
  readonly #maxBackwardsMs: number
  readonly #id = new BigUint64Array(1)
  readonly #halves = new Uint32Array(this.#id.buffer)
  #lastMs = -1
  #sequence = MAX_SEQUENCE
  /** The upper half of the ids of `#lastMs`, and their lower half without the sequence number. */
  #high = 0
  #low = 0

  constructor(options: SnowflakeOptions) {
    requireKnown(options, ['datacenter', 'machine', 'nowMs', 'maxBackwardsMs'])
    const datacenter = requireInteger('datacenter', options.datacenter, { min: 0, max: MAX_NODE_PART })
    const machine = requireInteger('machine', options.machine, { min: 0, max: MAX_NODE_PART })
    const maxBackwardsMs = options.maxBackwardsMs ?? DEFAULT_MAX_BACKWARDS_MS
    this.#node = packLow({ ms: 0, datacenter, machine, sequence: 0 })
    this.#maxBackwardsMs = requireInteger('maxBackwardsMs', maxBackwardsMs, { min: 0, max: 1000 })
    this.#nowMs = options.nowMs
  }

  /** The next id, from 0 to 2^63 - 1. */
  next(): bigint {
    this.#advance()
    this.#halves[HIGH] = this.#high
    this.#halves[LOW] = this.#low | this.#sequence
    return this.#id[0] as bigint
  }

  /** The next id in decimal digits: for JSON, where many parsers round large numbers. */
  nextString(): string {
    return this.next().toString()
  }

  /**
   * The next `count` ids (0 to 1,000,000), increasing: like `count` calls of `next`, but much faster and with 8 bytes
   * each. Blocks for about 1 ms per 4096 ids. If it throws, the ids already made for this call are lost.
   */
  take(count: number): BigUint64Array<ArrayBuffer> {
    requireInteger('count', count, { min: 0, max: MOST_AT_ONCE })
    const ids = new BigUint64Array(count)
    const halves = new Uint32Array(ids.buffer)
    let made = 0
    while (made < count) {
      this.#advance()
      const run = Math.min(count - made, MAX_SEQUENCE - this.#sequence + 1)
      for (let i = 0; i < run; i++) {
        const place = 2 * (made + i)
        halves[place + HIGH] = this.#high
        halves[place + LOW] = this.#low | (this.#sequence + i)
      }
      this.#sequence += run - 1
      made += run
    }
    return ids
  }

  /** Advances to the next free sequence number, in a new millisecond if there is one or if necessary. */
  #advance(): void {
    const ms = this.#readMs()
    if (ms > this.#lastMs) this.#enter(ms)
    else if (this.#sequence < MAX_SEQUENCE) this.#sequence++
    else this.#enter(this.#nextMs())
  }

  #enter(ms: number): void {
    this.#lastMs = ms
    this.#sequence = 0
    this.#high = packHigh(ms)
    this.#low = packLow({ ms, datacenter: 0, machine: 0, sequence: 0 }) | this.#node
  }

  #nextMs(): number {
    let previousMs = Number.NaN
    for (let equalReads = 0; equalReads < MOST_EQUAL_READS; equalReads++) {
      const ms = this.#readMs()
      if (ms > this.#lastMs) return ms
      if (ms !== previousMs) equalReads = 0
      previousMs = ms
    }
    throw new RuntimeError('SLUICE_RUNTIME_CLOCK_STALLED', {
      received: `the same time in ${MOST_EQUAL_READS} reads of the clock`,
      expected: 'a clock that reaches the next millisecond',
      action: 'Let the clock that is passed in advance by itself; in a test, on every read.',
    })
  }

  /** Milliseconds since the epoch of ids, in range and not too far back. */
  #readMs(): number {
    const now = this.#nowMs()
    const ms = Math.floor(now) - SNOWFLAKE_EPOCH_MS
    // NaN fails all comparisons.
    if (ms >= this.#lastMs - this.#maxBackwardsMs && ms >= 0 && ms <= MAX_SNOWFLAKE_MS) return ms
    throw unusableTime(now, this.#lastMs, this.#maxBackwardsMs)
  }
}

function unusableTime(now: number, lastMs: number, maxBackwardsMs: number): RuntimeError {
  if (typeof now !== 'number' || Number.isNaN(now)) {
    return new RuntimeError('SLUICE_RUNTIME_INVALID_PORT', {
      received: `${describeValue(now)} from nowMs()`,
      expected: 'milliseconds since 1970',
      action: 'Pass systemNowMs, or correct the clock that is passed in.',
    })
  }
  const ms = Math.floor(now) - SNOWFLAKE_EPOCH_MS
  if (ms < 0 || ms > MAX_SNOWFLAKE_MS) {
    return new RuntimeError('SLUICE_RUNTIME_CLOCK_OUT_OF_RANGE', {
      received: `${now} ms since 1970`,
      expected: `${SNOWFLAKE_EPOCH_MS} to ${SNOWFLAKE_EPOCH_MS + MAX_SNOWFLAKE_MS} ms`,
      action: 'Correct the clock of this machine; ids can be made from 2010-11-04 to 2080-07-10.',
    })
  }
  return new RuntimeError('SLUICE_RUNTIME_CLOCK_BACKWARDS', {
    received: `a clock ${lastMs - ms} ms behind the last id`,
    expected: `at most ${maxBackwardsMs} ms`,
    action:
      'Ask again when the clock has caught up, let the time service slew the clock instead of stepping it, or ' +
      'make a generator with another machine number.',
  })
}
