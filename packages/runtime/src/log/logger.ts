import { type NowMs, readClock } from '../clock-and-random.ts'
import { invalidOption, requireInteger } from '../option-range.ts'
import { type LineStream, LineWriter } from './line-writer.ts'
import { type LogFields, plainFields, Redaction } from './log-fields.ts'

/**
 * Writes JSON lines: `{"time":"...","level":"info","message":"...", ...fields}`.
 *
 * Use a constant message and put everything variable into fields: sampling is per message. Fields named like secrets
 * are written as `[redacted]`. Keys of callers are not recognized: log their {@link keyDigest}.
 */
export class Logger {
  readonly #output: LogOutput
  readonly #fields: readonly LogFields[]

  /** `fields` are added to every line; the last field of a name wins. */
  constructor(output: LogOutput, ...fields: readonly LogFields[]) {
    this.#output = output
    this.#fields = fields
  }

  /** A logger for the same output with additional fields in every line; they replace those of the same name. */
  child(fields: LogFields): Logger {
    return new Logger(this.#output, ...this.#fields, fields)
  }

  /** Whether this level is enabled; for callers whose fields are expensive to compute. */
  isEnabled(level: LogLevel): boolean {
    return this.#output.isEnabled(level)
  }

  /** Details for debugging. */
  debug(message: string, fields?: LogFields): void {
    this.#write('debug', message, fields)
  }

  /** Normal, infrequent events. */
  info(message: string, fields?: LogFields): void {
    this.#write('info', message, fields)
  }

  /** A problem; work continues. */
  warn(message: string, fields?: LogFields): void {
    this.#write('warn', message, fields)
  }

  /** A failure that needs attention. */
  error(message: string, fields?: LogFields): void {
    this.#write('error', message, fields)
  }

  #write(level: LogLevel, message: string, fields: LogFields | undefined): void {
    if (!this.#output.isEnabled(level)) return
    this.#output.write({ level, message, fields: fields === undefined ? this.#fields : [...this.#fields, fields] })
  }
}

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
