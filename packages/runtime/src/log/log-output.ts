import { invalidOption, requireInteger } from '../option-range.ts'
import { type NowMs, readClock } from '../system.ts'
import { type LineStream, LineWriter } from './line-writer.ts'
import { type LogFields, plainFields } from './log-fields.ts'
import { LogSampler, type Suppressed } from './log-sampler.ts'
import { Redaction } from './redaction.ts'

/** Severity, lowest first. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Options of {@link LogOutput}. */
export interface LogOutputOptions {
  /** Output stream: `process.stdout`, a file stream, a socket. It is not closed. */
  readonly stream: LineStream
  /** The clock, for timestamps and sampling. */
  readonly nowMs: NowMs
  /** Minimum level; `off` disables logging. Default: `info`. */
  readonly level?: LogLevel | 'off' | undefined
  /** Maximum number of lines per message and second; 1 or more, or Infinity. Default: 50. */
  readonly mostPerSecond?: number | undefined
  /** Additional names of secret fields, besides the built-in ones; case and word separators do not matter. */
  readonly redact?: readonly string[] | undefined
  /**
   * Maximum number of characters buffered while the stream is blocked; further lines are dropped. 0 or more. Default:
   * 1,000,000.
   */
  readonly mostWaiting?: number | undefined
}

/** Line counts so far. */
export interface LogCounts {
  /** Written to the stream. */
  readonly written: number
  /** Suppressed by sampling. */
  readonly suppressed: number
  /** Dropped because the stream was blocked, failed or closed. */
  readonly dropped: number
}

/** A log line before formatting. */
export interface LogEntry {
  readonly level: LogLevel
  readonly message: string
  /** The last field of a name wins. */
  readonly fields: readonly LogFields[]
}

const RANKS = { debug: 0, info: 1, warn: 2, error: 3, off: 4 } as const
const DEFAULT_MOST_PER_SECOND = 50
const DEFAULT_MOST_WAITING = 1_000_000
const OWN_NAMES: readonly string[] = ['time', 'level', 'message']

/**
 * The log output of a process; {@link Logger}s share one.
 *
 * It never waits for the stream: while the stream is blocked, lines are buffered up to a limit, then dropped and
 * counted; when it flows again, a line reports how many are missing. Lines per message, level and second are limited; a
 * later line reports how many were suppressed.
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

  /** Whether this level is enabled; for callers whose fields are expensive to compute. */
  isEnabled(level: LogLevel): boolean {
    return RANKS[level] >= this.#rank
  }

  /** Writes a line, unless its level is disabled or sampling suppresses it. Never waits. */
  write(entry: LogEntry): void {
    if (!this.isEnabled(entry.level)) return
    const nowMs = readClock(this.#nowMs)
    this.#report(this.#sampler.turn(nowMs), nowMs)
    if (this.#sampler.admit(entry.level, entry.message)) this.#writer.write(this.#lineOf(entry, nowMs))
    else this.#suppressed++
  }

  /**
   * Reports the lines suppressed in past seconds now. The next line does so too: call it every second or so, for
   * processes that fall silent after a burst.
   */
  reportSuppressed(): void {
    const nowMs = readClock(this.#nowMs)
    this.#report(this.#sampler.turn(nowMs), nowMs)
  }

  /** Line counts so far. */
  counts(): LogCounts {
    return { ...this.#writer.counts, suppressed: this.#suppressed }
  }

  /**
   * Reports suppressed lines, accepts no further line, and waits until the stream has written everything or has failed,
   * or until `signal` aborts; then drops the rest.
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
