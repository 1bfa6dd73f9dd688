import type { LogFields } from './log-fields.ts'
import type { LogLevel, LogOutput } from './log-output.ts'

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
