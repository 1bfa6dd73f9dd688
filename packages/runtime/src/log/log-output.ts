import { invalidOption, requireInteger } from '../option-range.ts'
import { type NowMs, readClock } from '../system.ts'
import { type LineStream, LineWriter } from './line-writer.ts'
import { type LogFields, plainFields } from './log-fields.ts'
import { LogSampler, type Suppressed } from './log-sampler.ts'
import { Redaction } from './redaction.ts'

/** How much a line matters, least first. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Where lines go, and which. */
export interface LogOutputOptions {
  /** Where lines are written: `process.stdout`, a file stream, a socket. It stays open. */
  readonly stream: LineStream
  /** The clock, for the time of each line and for thinning out. */
  readonly nowMs: NowMs
  /** Lines below this level are not written; `off` for none at all. Default `info`. */
  readonly level?: LogLevel | 'off' | undefined
  /** How many lines of one message are written in one second of the clock; 1 or more, or Infinity. Default 50. */
  readonly mostPerSecond?: number | undefined
  /** Names of further fields that are secrets, besides those that always are; spelling of words makes no difference. */
  readonly redact?: readonly string[] | undefined
  /** How many characters may wait while the stream is blocked, before lines are dropped; 0 or more. Default 1,000,000. */
  readonly mostWaiting?: number | undefined
}

/** What became of the lines so far. */
export interface LogCounts {
  /** Given to the stream. */
  readonly written: number
  /** Not written because too many of the same message came. */
  readonly suppressed: number
  /** Lost because the stream was blocked, had failed, or was no longer used. */
  readonly dropped: number
}

/** A line before it is written. */
export interface LogEntry {
  readonly level: LogLevel
  readonly message: string
  /** Of fields of the same name, the last counts. */
  readonly fields: readonly LogFields[]
}

const RANKS = { debug: 0, info: 1, warn: 2, error: 3, off: 4 } as const
const DEFAULT_MOST_PER_SECOND = 50
const DEFAULT_MOST_WAITING = 1_000_000
const OWN_NAMES: readonly string[] = ['time', 'level', 'message']

/**
 * The place that the lines of a process go to; {@link Logger}s share one.
 *
 * Nothing here ever waits for the stream: while it is blocked, lines wait up to a bound, then they are dropped and
 * counted, and when it flows again a line tells how many are missing. Of one message and level, only so many lines a
 * second are written; a line after that second tells how many more there were.
 */
export class LogOutput {
  readonly #nowMs: NowMs
  readonly #rank: number
  readonly #redaction: Redaction
  readonly #sampler: LogSampler<LogLevel>
  readonly #writer: LineWriter
  #suppressed = 0

  constructor(options: LogOutputOptions) {
    const { level = 'info', mostPerSecond = DEFAULT_MOST_PER_SECOND, mostWaiting = DEFAULT_MOST_WAITING } = options
    if (!Object.hasOwn(RANKS, level)) throw invalidOption('level', level, `one of ${Object.keys(RANKS).join(', ')}`)
    if (mostPerSecond !== Number.POSITIVE_INFINITY) {
      requireInteger('mostPerSecond', mostPerSecond, { min: 1, max: Number.MAX_SAFE_INTEGER })
    }
    requireInteger('mostWaiting', mostWaiting, { min: 0, max: Number.MAX_SAFE_INTEGER })
    this.#nowMs = options.nowMs
    this.#rank = RANKS[level]
    this.#redaction = new Redaction(options.redact)
    this.#sampler = new LogSampler(mostPerSecond)
    const lostLine = (dropped: number): string =>
      this.#lineOf({ level: 'warn', message: 'log lines dropped', fields: [{ dropped }] }, readClock(this.#nowMs))
    this.#writer = new LineWriter({ stream: options.stream, mostWaiting, lostLine })
  }

  /** Whether lines of this level are written; for callers to whom making the fields costs something. */
  isEnabled(level: LogLevel): boolean {
    return RANKS[level] >= this.#rank
  }

  /** Writes a line, unless its level is not enabled or it is one too many of its message. Never waits. */
  write(entry: LogEntry): void {
    if (!this.isEnabled(entry.level)) return
    const nowMs = readClock(this.#nowMs)
    this.#report(this.#sampler.turn(nowMs), nowMs)
    if (this.#sampler.admit(entry.level, entry.message)) this.#writer.write(this.#lineOf(entry, nowMs))
    else this.#suppressed++
  }

  /**
   * Tells now of lines that were suppressed in a second that is over. The next line does so too: this is for processes
   * that fall silent after a flood, to be called every second or so.
   */
  reportSuppressed(): void {
    const nowMs = readClock(this.#nowMs)
    this.#report(this.#sampler.turn(nowMs), nowMs)
  }

  /** What became of the lines so far. */
  counts(): LogCounts {
    return { ...this.#writer.counts, suppressed: this.#suppressed }
  }

  /**
   * Tells what was suppressed, takes no further line, and waits until the stream has written everything or has failed,
   * or until `signal` aborts, and then drops what still waits.
   */
  async close(signal?: AbortSignal): Promise<void> {
    this.#report(this.#sampler.finish(), readClock(this.#nowMs))
    await this.#writer.close(signal)
  }

  #report(suppressed: readonly Suppressed<LogLevel>[], nowMs: number): void {
    for (const { level, message, count } of suppressed) {
      const entry = { level, message: `${count} more suppressed`, fields: [{ suppressedMessage: message }] }
      this.#writer.write(this.#lineOf(entry, nowMs))
    }
  }

  #lineOf({ level, message, fields }: LogEntry, nowMs: number): string {
    const line: Record<string, unknown> = Object.create(null)
    line['time'] = timeText(nowMs)
    line['level'] = level
    line['message'] = this.#redaction.text(message)
    for (const some of fields) {
      for (const [name, value] of Object.entries(plainFields(some, this.#redaction))) {
        line[OWN_NAMES.includes(name) ? `field.${name}` : name] = value
      }
    }
    return JSON.stringify(line)
  }
}

// A clock may show times that no date can hold.
const LATEST_DATE_MS = 8.64e15

function timeText(nowMs: number): string {
  return Math.abs(nowMs) <= LATEST_DATE_MS ? new Date(nowMs).toISOString() : String(nowMs)
}
