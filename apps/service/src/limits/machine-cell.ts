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
 */
export class MachineCells {
  readonly memory: SharedArrayBuffer
  readonly #cells: Int32Array

  /** `memory`: of another thread's cells; new ones for `count` threads otherwise. */
  constructor(count: number, memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(2 * count * Int32Array.BYTES_PER_ELEMENT)
    this.#cells = new Int32Array(this.memory)
    if (memory === undefined) this.#cells.fill(NONE)
  }

  /** Gives a thread its number, until an instant in milliseconds since 1970; `Infinity` for good. */
  give(thread: number, number: number, untilMs: number): void {
    // First the end: whoever reads between the two finds an end that was right for the number before, or for both.
    Atomics.store(this.#cells, 2 * thread + 1, secondsOf(untilMs))
    Atomics.store(this.#cells, 2 * thread, number)
  }

  /** Takes the number of a thread away: it makes no more ids. */
  withdraw(thread: number): void {
    Atomics.store(this.#cells, 2 * thread, NONE)
  }

  /** The number of a thread; below 0 when it has none. */
  numberOf(thread: number): number {
    return Atomics.load(this.#cells, 2 * thread)
  }

  /** Until when it may be used, in milliseconds since 1970. */
  untilOf(thread: number): number {
    return Atomics.load(this.#cells, 2 * thread + 1) * MS_PER_SECOND + SNOWFLAKE_EPOCH_MS
  }
}

/** Whole seconds, rounded down, since ids began; as many as fit when it is later than that. */
function secondsOf(ms: number): number {
  return Math.min(Math.floor((ms - SNOWFLAKE_EPOCH_MS) / MS_PER_SECOND), 2 ** 31 - 1)
}

/** Makes the ids of one thread. */
export class IdSource {
  readonly #cells: MachineCells
  readonly #thread: number
  readonly #nowMs: NowMs
  #number = NONE
  #generator: SnowflakeGenerator | undefined

  constructor(cells: MachineCells, thread: number, nowMs: NowMs) {
    this.#cells = cells
    this.#thread = thread
    this.#nowMs = nowMs
  }

  /** The next id in decimal digits; undefined while there is no number to make it with. */
  next(): string | undefined {
    if (this.#nowMs() >= this.#cells.untilOf(this.#thread)) return undefined
    const number = this.#cells.numberOf(this.#thread)
    if (number !== this.#number) this.#use(number)
    return this.#generator?.nextString()
  }

  #use(number: number): void {
    this.#number = number
    this.#generator =
      number < 0
        ? undefined
        : new SnowflakeGenerator({
            datacenter: number >> PART_BITS,
            machine: number & PART_MASK,
            nowMs: this.#nowMs,
          })
  }
}
