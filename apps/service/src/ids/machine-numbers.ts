import type { NowMs } from '@sluice/runtime'
import { SNOWFLAKE_EPOCH_MS, SnowflakeGenerator } from '@sluice/runtime'

const MS_PER_SECOND = 1000

/** Half of the ten bits of the machine number in an id. */
const PART_BITS = 5
const PART_MASK = 31

/** Count of machine numbers. */
export const MACHINE_NUMBERS = 1024

/** No number. */
const NONE = -1

/**
 * The machine numbers of the threads of this process and when they expire, in shared memory, so that no thread uses a
 * number that is no longer leased.
 *
 * Invariant: no thread uses a number after its expiry. The writer stores the number, then its expiry; a reader loads
 * the expiry, then the number. So a reader that sees a new expiry also sees the new number. A reader that sees the old
 * expiry, which has not passed, gets the old number or the new one; both are leased at that moment.
 */
export class MachineNumberTable {
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array

  /** `memory`: the table of another thread. Default: a new table for `count` threads. */
  constructor(count: number, memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(2 * count * Int32Array.BYTES_PER_ELEMENT)
    this.#words = new Int32Array(this.memory)
    if (memory === undefined) this.#words.fill(NONE)
  }

  /** Sets the number of a thread until a time in milliseconds since 1970; `Infinity`: without expiry. */
  give(thread: number, number: number, untilMs: number): void {
    Atomics.store(this.#words, 2 * thread, number)
    Atomics.store(this.#words, 2 * thread + 1, secondsOf(untilMs))
  }

  /** The number that a thread may use at `nowMs`; below 0: none. */
  usableAt(thread: number, nowMs: number): number {
    const untilMs = Atomics.load(this.#words, 2 * thread + 1) * MS_PER_SECOND + SNOWFLAKE_EPOCH_MS
    return nowMs < untilMs ? this.numberOf(thread) : NONE
  }

  /** Removes the number of a thread, so that it creates no more ids. */
  withdraw(thread: number): void {
    Atomics.store(this.#words, 2 * thread, NONE)
  }

  /** The number of a thread, even if expired; below 0: none. */
  numberOf(thread: number): number {
    return Atomics.load(this.#words, 2 * thread)
  }
}

/** Whole seconds since the epoch of ids, rounded down and clamped to 32 bits. */
function secondsOf(ms: number): number {
  return Math.min(Math.floor((ms - SNOWFLAKE_EPOCH_MS) / MS_PER_SECOND), 2 ** 31 - 1)
}

/** Creates the ids of one thread. */
export class IdSource {
  readonly #machineNumbers: MachineNumberTable
  readonly #thread: number
  readonly #nowMs: NowMs
  #number = NONE
  #generator: SnowflakeGenerator | undefined

  /** The next id in decimal digits; undefined without a machine number. Can be passed on without its object. */
  readonly next = (): string | undefined => {
    const number = this.#machineNumbers.usableAt(this.#thread, this.#nowMs())
    if (number < 0) return undefined
    if (number !== this.#number) this.#use(number)
    return this.#generator?.nextString()
  }

  constructor(machineNumbers: MachineNumberTable, thread: number, nowMs: NowMs) {
    this.#machineNumbers = machineNumbers
    this.#thread = thread
    this.#nowMs = nowMs
  }

  #use(number: number): void {
    this.#number = number
    this.#generator = new SnowflakeGenerator({
      datacenter: number >> PART_BITS,
      machine: number & PART_MASK,
      nowMs: this.#nowMs,
    })
  }
}
