/** Lines suppressed within one second. */
export interface Suppressed<Level> {
  readonly level: Level
  readonly message: string
  readonly count: number
}

interface Tally<Level> {
  readonly level: Level
  readonly message: string
  seen: number
}

const MOST_MESSAGES = 1000

/** Limits the lines per second of one message and level. Tracks at most 1000 messages per second. */
export class LogSampler<Level extends string> {
  readonly #mostPerSecond: number
  readonly #tallies = new Map<string, Tally<Level>>()
  #second = Number.NaN

  constructor(mostPerSecond: number) {
    this.#mostPerSecond = mostPerSecond
  }

  /**
   * Starts a new second if the clock shows one, and returns what was suppressed in the previous one. Call it before
   * each line; `nowMs` is the time of that line.
   */
  turn(nowMs: number): Suppressed<Level>[] {
    const second = Math.floor(nowMs / 1000)
    if (second === this.#second) return []
    this.#second = second
    return this.finish()
  }

  /** Whether a line may be written; counts it either way. */
  admit(level: Level, message: string): boolean {
    const known = this.#tallyOf(level, message)
    known.seen++
    return known.seen <= this.#mostPerSecond
  }

  /** Returns what was suppressed in this second, and resets all messages. */
  finish(): Suppressed<Level>[] {
    const suppressed = Array.from(this.#tallies.values(), ({ level, message, seen }) => ({
      level,
      message,
      count: seen - this.#mostPerSecond,
    })).filter(({ count }) => count > 0)
    this.#tallies.clear()
    return suppressed
  }

  #tallyOf(level: Level, message: string): Tally<Level> {
    // Further different messages count as one message of their level.
    const isKept = this.#tallies.size < MOST_MESSAGES || this.#tallies.has(`${level} ${message}`)
    const kept = isKept ? message : 'other messages'
    const key = `${level} ${kept}`
    let tally = this.#tallies.get(key)
    if (tally === undefined) {
      tally = { level, message: kept, seen: 0 }
      this.#tallies.set(key, tally)
    }
    return tally
  }
}
