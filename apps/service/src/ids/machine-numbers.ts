import type { NowMs } from '@sluice/runtime'
import { SNOWFLAKE_EPOCH_MS, SnowflakeGenerator } from '@sluice/runtime'

const MS_PER_SECOND = 1000

/** Half of the ten bits that make the ids of one node differ from those of all others. */
const PART_BITS = 5
const PART_MASK = 31

/** How many numbers there are for nodes. */
export const MACHINE_NUMBERS = 1024

/** Stands for no number. */
const NONE = -1

/**
 * The numbers that the threads of this process make ids with, and until when: in memory that they share, so that no thread goes
 * on with a number that is not ours any more.
 *
 * Invariant: nobody uses a number after its own end. The writer stores the number, then its end; a reader loads the end, then
 * the number. So a reader that sees a new end also sees the new number. A reader that sees the old end, which has not passed,
 * gets the old number or the new one; both are ours at that moment.
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

  /** Gives a thread its number, until an instant in milliseconds since 1970; `Infinity` for good. */
  give(thread: number, number: number, untilMs: number): void {
    Atomics.store(this.#words, 2 * thread, number)
    Atomics.store(this.#words, 2 * thread + 1, secondsOf(untilMs))
  }

  /** The number that a thread may use at `nowMs`; below 0 when it has none. */
  usableAt(thread: number, nowMs: number): number {
    const untilMs = Atomics.load(this.#words, 2 * thread + 1) * MS_PER_SECOND + SNOWFLAKE_EPOCH_MS
    return nowMs < untilMs ? this.numberOf(thread) : NONE
  }

  /** Takes the number of a thread away: it makes no more ids. */
  withdraw(thread: number): void {
    Atomics.store(this.#words, 2 * thread, NONE)
  }

  /** The number of a thread, also after its end; below 0 when it has none. */
  numberOf(thread: number): number {
    return Atomics.load(this.#words, 2 * thread)
  }
}

/** Whole seconds, rounded down, since ids began; as many as fit when it is later than that. */
function secondsOf(ms: number): number {
  return Math.min(Math.floor((ms - SNOWFLAKE_EPOCH_MS) / MS_PER_SECOND), 2 ** 31 - 1)
}

/** Makes the ids of one thread. */
export class IdSource {
  readonly #machineNumbers: MachineNumberTable
  readonly #thread: number
  readonly #nowMs: NowMs
  #number = NONE
  #generator: SnowflakeGenerator | undefined

  constructor(machineNumbers: MachineNumberTable, thread: number, nowMs: NowMs) {
    this.#machineNumbers = machineNumbers
    this.#thread = thread
    this.#nowMs = nowMs
  }

  /** The next id in decimal digits; undefined while there is no number to make it with. */
  next(): string | undefined {
    const number = this.#machineNumbers.usableAt(this.#thread, this.#nowMs())
    if (number < 0) return undefined
    if (number !== this.#number) this.#use(number)
    return this.#generator?.nextString()
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
