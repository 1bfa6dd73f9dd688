import type { CounterSeries, InFlight, Logger, MetricRegistry } from '@sluice/runtime'
import { errorFields } from '../../observability/error-fields.ts'
import type { Instrument } from '../../observability/instrument.ts'
import { OTHER } from '../../observability/metrics/metric-names.ts'
import type { AdHocLimits, ThrottleAnswer, ThrottleRequest } from '../../operations/throttle/cl-throttle.ts'
import { MAX_PERIOD_SECONDS, MAX_UNITS, ThrottleTally } from '../../operations/throttle/cl-throttle.ts'
import type { CommandParser } from './command-parser.ts'
import type { CommandEntry } from './connection-commands.ts'
import { commandCommand, connectionCommands } from './connection-commands.ts'
import type { ReplyValue, ReplyWriter } from './reply-writer.ts'
import { ReplyError } from './reply-writer.ts'
import type { RespSession } from './resp-session.ts'
import type { SluiceCommandParts } from './sluice-commands.ts'
import { sluiceCommands } from './sluice-commands.ts'

/** Observes decisions on ad-hoc limits. */
export type ThrottleObserver = Pick<Instrument, 'throttled' | 'failed'>

/** What commands are run with. */
export interface CommandRunnerParts extends SluiceCommandParts {
  readonly limits: AdHocLimits
  readonly observer: ThrottleObserver
  readonly metrics: MetricRegistry
  readonly log: Logger
  /** Of the service. */
  readonly version: string
  /** Bounds checks in flight. Those that a store answers at once are never in flight. */
  readonly inFlightLimit: InFlight
  /** Whether checks must be rejected for lack of capacity. */
  readonly isOverloaded: () => boolean
}

const THROTTLE = Buffer.from('cl.throttle')
const THROTTLE_USAGE =
  'ERR wrong number of arguments. Usage: CL.THROTTLE <key> <max_burst> <count per period> <period seconds> [<quantity>]'

const OUTCOMES = ['ok', 'denied', 'error'] as const

type Outcome = (typeof OUTCOMES)[number]

/** Runs commands of all connections of a thread. */
export class CommandRunner {
  readonly #parts: CommandRunnerParts
  readonly #table: ReadonlyMap<string, CommandEntry>
  readonly #counts: CommandCounts
  readonly #tally = new ThrottleTally()
  /** Reused: a check on a store that answers at once allocates nothing but its key. */
  readonly #request: { -readonly [Name in keyof ThrottleRequest]: ThrottleRequest[Name] } = {
    key: '',
    maxBurst: 0,
    count: 0,
    periodSeconds: 0,
    quantity: 0,
    tenant: undefined,
  }

  /** Whether the event loop is late, as of the last `begin`. */
  #isOverloaded = false

  constructor(parts: CommandRunnerParts) {
    this.#parts = parts
    const throttle: CommandEntry = {
      run: () => {
        throw new Error('CL.THROTTLE does not come through the table')
      },
      arity: -5,
      firstKey: 1,
    }
    const table = new Map<string, CommandEntry>([
      ['CL.THROTTLE', throttle],
      ...Object.entries({ ...sluiceCommands(parts), ...connectionCommands(parts.version) }),
      ['COMMAND', commandCommand(() => this.#table)],
    ])
    this.#table = table
    this.#counts = new CommandCounts(parts.metrics, [...table.keys()])
  }

  /** To be called before commands that arrived together are run: what holds for all of them is found out once. */
  begin(): void {
    this.#isOverloaded = this.#parts.isOverloaded()
  }

  /** Reports what was decided since the last call. To be called about once per second, as exact as alerts are. */
  report(): void {
    const counts = this.#tally.take()
    if (counts !== undefined) this.#parts.observer.throttled(counts)
  }

  /**
   * Runs the command that `parser` has just read, of `count` arguments. Writes its reply, or returns a promise of what
   * writes it. Never throws, and the promise never rejects.
   */
  run(
    session: RespSession,
    parser: CommandParser,
    { count, writer }: { readonly count: number; readonly writer: ReplyWriter },
  ): Promise<(writer: ReplyWriter) => void> | undefined {
    const isThrottle = isNamed(parser, THROTTLE)
    const name = isThrottle ? 'CL.THROTTLE' : parser.text(0).toUpperCase()
    try {
      if (isThrottle) return this.#throttle(session, parser, { count, writer })
      return this.#other(session, parser, { name, count, writer })
    } catch (error) {
      this.#writeError(error, name, writer)
      return undefined
    }
  }

  #throttle(
    session: RespSession,
    parser: CommandParser,
    { count, writer }: { readonly count: number; readonly writer: ReplyWriter },
  ): Promise<(writer: ReplyWriter) => void> | undefined {
    if (!session.hasAccess) session.requireAccess()
    if (count !== 5 && count !== 6) throw new ReplyError(THROTTLE_USAGE)
    const request = this.#request
    request.key = parser.binary(1)
    if (request.key === '' || request.key.length > 4096) throw new ReplyError('ERR the key must have 1 to 4096 bytes')
    request.maxBurst = numberAt(parser, 2, MAX_UNITS)
    request.count = numberAt(parser, 3, MAX_UNITS)
    request.periodSeconds = numberAt(parser, 4, MAX_PERIOD_SECONDS)
    request.quantity = count === 6 ? numberAt(parser, 5, MAX_UNITS) : 1
    request.tenant = session.principal?.tenant
    if (request.count === 0 || request.periodSeconds === 0) throw new ReplyError('ERR Zero rates are not supported')
    if (this.#isOverloaded) throw overloaded()
    const { limits, inFlightLimit } = this.#parts
    if (!limits.answersAtOnce && !inFlightLimit.tryEnter()) throw overloaded()
    let answer: ReturnType<AdHocLimits['throttle']>
    try {
      answer = limits.throttle(request)
    } finally {
      if (!(limits.answersAtOnce || answer! instanceof Promise)) inFlightLimit.leave()
    }
    // A quantity of 0 asks, like a peek: it is no check.
    const isCheck = request.quantity > 0
    if (answer instanceof Promise) {
      return this.#later(answer, 'CL.THROTTLE', (decided, later) => this.#writeThrottle(decided, isCheck, later))
    }
    if (answer === undefined) throw tooManyLimits(limits.max)
    this.#writeThrottle(answer, isCheck, writer)
    return undefined
  }

  #writeThrottle(answer: ThrottleAnswer, isCheck: boolean, writer: ReplyWriter): void {
    this.#counts.throttle(answer.allowed)
    if (isCheck) this.#tally.add(answer)
    writer.throttle(answer)
  }

  #other(
    session: RespSession,
    parser: CommandParser,
    { name, count, writer }: { readonly name: string; readonly count: number; readonly writer: ReplyWriter },
  ): Promise<(writer: ReplyWriter) => void> | undefined {
    const entry = this.#table.get(name)
    if (entry?.isOpen !== true) session.requireAccess()
    if (entry === undefined) throw new ReplyError(`ERR unknown command '${parser.text(0).slice(0, 128)}'`)
    const { run, arity } = entry
    if (arity < 0 ? count < -arity : count !== arity) {
      throw new ReplyError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`)
    }
    const args = Array.from({ length: count - 1 }, (_, index) => parser.text(index + 1))
    const isCheck = name.startsWith('SLUICE.')
    const { inFlightLimit } = this.#parts
    if (isCheck && (this.#isOverloaded || !inFlightLimit.tryEnter())) throw overloaded()
    let value: ReplyValue | Promise<ReplyValue> | undefined
    try {
      value = run(session, args)
    } finally {
      if (isCheck && !(value instanceof Promise)) inFlightLimit.leave()
    }
    const write = (reply: ReplyValue, later: ReplyWriter): void => {
      this.#counts.add(name, outcomeOf(reply))
      later.value(reply)
    }
    if (value instanceof Promise) return this.#later(value, name, write)
    writer.protocol = session.protocol
    write(value, writer)
    return undefined
  }

  /** What writes the reply once it is known. */
  #later<T>(
    value: Promise<T>,
    name: string,
    write: (value: T, writer: ReplyWriter) => void,
  ): Promise<(writer: ReplyWriter) => void> {
    const { inFlightLimit } = this.#parts
    return value.then(
      (decided) => {
        inFlightLimit.leave()
        return (writer) => write(decided, writer)
      },
      (error: unknown) => {
        inFlightLimit.leave()
        return (writer) => this.#writeError(error, name, writer)
      },
    )
  }

  #writeError(error: unknown, name: string, writer: ReplyWriter): void {
    this.#counts.add(name, 'error')
    if (error instanceof ReplyError) {
      writer.error(error.message)
      return
    }
    if (name === 'CL.THROTTLE') this.#parts.observer.failed()
    this.#parts.log.error('a command failed', {
      command: this.#table.has(name) ? name : OTHER,
      error: errorFields(error),
    })
    writer.error('ERR The service failed at this command. It may have been counted or not. The log says more.')
  }
}

function overloaded(): ReplyError {
  return new ReplyError('OVERLOADED The service is overloaded. Nothing was counted; try again.')
}

function tooManyLimits(max: number): ReplyError {
  return new ReplyError(
    `ERR more than ${max} different limits. Use the same numbers for many keys, or a rule and SLUICE.CHECK, or raise ` +
      '--max-ad-hoc-limits of the service.',
  )
}

/** Whether the first argument is this name, in letters of either case. */
function isNamed({ bytes, starts, ends }: CommandParser, name: Buffer): boolean {
  const start = starts[0]!
  if (ends[0]! - start !== name.length) return false
  for (let index = 0; index < name.length; index++) if ((bytes[start + index]! | 32) !== name[index]) return false
  return true
}

function numberAt(parser: CommandParser, index: number, most: number): number {
  const value = parser.whole(index)
  if (value === undefined) throw new ReplyError('ERR value is not an integer or out of range')
  if (value > most) throw new ReplyError(`ERR value is out of range: at most ${most}`)
  return value
}

function outcomeOf(reply: ReplyValue): Outcome {
  const isDenied = typeof reply === 'object' && reply !== null && 'allowed' in reply && reply['allowed'] === 0
  return isDenied ? 'denied' : 'ok'
}

/** Counts commands by name and outcome. */
class CommandCounts {
  readonly #series: ReadonlyMap<string, Readonly<Record<Outcome, CounterSeries>>>
  readonly #other: Readonly<Record<Outcome, CounterSeries>>
  readonly #throttle: Readonly<Record<Outcome, CounterSeries>>

  constructor(metrics: MetricRegistry, names: readonly string[]) {
    const commands = [...names.map((name) => name.toLowerCase()), OTHER]
    const counter = metrics.counter({
      name: 'sluice_resp_commands_total',
      help: 'Commands of the Redis protocol that were answered, by command and outcome.',
      labels: [
        { name: 'command', values: commands },
        { name: 'outcome', values: OUTCOMES },
      ],
    })
    const seriesOf = (command: string): Readonly<Record<Outcome, CounterSeries>> => ({
      ok: counter.labels({ command, outcome: 'ok' }),
      denied: counter.labels({ command, outcome: 'denied' }),
      error: counter.labels({ command, outcome: 'error' }),
    })
    this.#series = new Map(names.map((name) => [name, seriesOf(name.toLowerCase())]))
    this.#other = seriesOf(OTHER)
    this.#throttle = this.#series.get('CL.THROTTLE') ?? this.#other
  }

  throttle(allowed: boolean): void {
    this.#throttle[allowed ? 'ok' : 'denied'].inc()
  }

  add(name: string, outcome: Outcome): void {
    ;(this.#series.get(name) ?? this.#other)[outcome].inc()
  }
}
