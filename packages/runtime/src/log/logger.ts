import type { LogFields } from './log-fields.ts'
import type { LogLevel, LogOutput } from './log-output.ts'

/**
 * Writes what happens as lines of JSON: `{"time":"...","level":"info","message":"...", ...fields}`.
 *
 * The message is a fixed text and what differs from line to line goes into fields, because repeated messages are thinned
 * out by their text. Fields named like secrets are written as `[redacted]`. Keys of callers are not known as such: write
 * their {@link keyDigest}.
 */
export class Logger {
  readonly #output: LogOutput
  readonly #fields: readonly LogFields[]

  /** `fields` are in every line; of fields of the same name, the last counts. */
  constructor(output: LogOutput, ...fields: readonly LogFields[]) {
    this.#output = output
    this.#fields = fields
  }

  /** A logger for the same output with further fields in every line; they replace those of the same name. */
  child(fields: LogFields): Logger {
    return new Logger(this.#output, ...this.#fields, fields)
  }

  /** Whether lines of this level are written; for callers to whom making the fields costs something. */
  isEnabled(level: LogLevel): boolean {
    return this.#output.isEnabled(level)
  }

  /** For whoever looks for the reason of something. */
  debug(message: string, fields?: LogFields): void {
    this.#write('debug', message, fields)
  }

  /** What happens normally and not often. */
  info(message: string, fields?: LogFields): void {
    this.#write('info', message, fields)
  }

  /** Something is not as it should be, and work goes on. */
  warn(message: string, fields?: LogFields): void {
    this.#write('warn', message, fields)
  }

  /** Something failed that somebody has to look at. */
  error(message: string, fields?: LogFields): void {
    this.#write('error', message, fields)
  }

  #write(level: LogLevel, message: string, fields: LogFields | undefined): void {
    if (!this.#output.isEnabled(level)) return
    this.#output.write({ level, message, fields: fields === undefined ? this.#fields : [...this.#fields, fields] })
  }
}
