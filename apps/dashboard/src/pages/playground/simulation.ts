import type { Clock, Limiter, Rule } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import type { AlgorithmName, Scenario } from './scenario.ts'
import { ruleOf, SIMULATED_WINDOWS, windowMsOf } from './scenario.ts'
import type { Traffic } from './traffic.ts'
import { trafficOf } from './traffic.ts'

/** Columns that results are counted in. */
export const RESULT_COLUMNS = 96

/** Columns of one window. */
export const COLUMNS_PER_WINDOW: number = RESULT_COLUMNS / SIMULATED_WINDOWS

/** Whole windows since 1970, so that the boundaries of fixed windows are those of the simulation. */
const BEGINNING_WINDOWS = 1_000_000

const KEY = 'caller'

/** What an algorithm made of the calls. */
export interface Lane {
  readonly algorithm: AlgorithmName
  readonly rule: Rule
  /** Calls that went on, by column; delayed ones in the column in which they went on. */
  readonly admitted: readonly number[]
  /** Calls that were denied, by column. */
  readonly denied: readonly number[]
  /** Units left at the end of each column. */
  readonly remaining: readonly number[]
  readonly admittedCount: number
  readonly deniedCount: number
  /** The most calls that went on within the length of one window, wherever it begins. */
  readonly worstWindow: number
  /** Where that window begins, in columns. */
  readonly worstColumn: number
  /** The longest time that a call had to wait for its turn. */
  readonly longestDelayMs: number
}

/** The results of a scenario. */
export interface Simulation {
  readonly lanes: readonly Lane[]
  /** Calls that arrived, by column. */
  readonly offered: readonly number[]
  readonly offeredCount: number
  readonly isCut: boolean
}

/** Runs the calls of a scenario through each of its algorithms: the same code that decides in the service. */
export function simulate(scenario: Scenario): Simulation {
  const traffic = trafficOf(scenario)
  const columns = new Columns(traffic.lengthMicros)
  const offered = columns.empty()
  for (const at of traffic.arrivals) columns.count(offered, at)
  const lanes = scenario.algorithms.map((algorithm) => runLane(algorithm, scenario, traffic))
  return { lanes, offered, offeredCount: traffic.arrivals.length, isCut: traffic.isCut }
}

/** Time that stands still until it is moved. */
class SimulatedClock implements Clock {
  #micros: number

  constructor(micros: number) {
    this.#micros = micros
  }

  nowMicros(): number {
    return this.#micros
  }

  moveTo(micros: number): void {
    this.#micros = micros
  }
}

/** Counts by column. */
class Columns {
  readonly #columnMicros: number

  constructor(lengthMicros: number) {
    this.#columnMicros = lengthMicros / RESULT_COLUMNS
  }

  empty(): number[] {
    return new Array<number>(RESULT_COLUMNS).fill(0)
  }

  /** What is beyond the end, such as a call that waits, is not shown. */
  count(counts: number[], micros: number): void {
    const column = Math.floor(micros / this.#columnMicros)
    if (column < RESULT_COLUMNS) counts[column]!++
  }

  endOf(column: number): number {
    return Math.floor((column + 1) * this.#columnMicros) - 1
  }
}

function runLane(algorithm: AlgorithmName, scenario: Scenario, { arrivals, lengthMicros }: Traffic): Lane {
  const rule = ruleOf(algorithm, scenario)
  const windowMicros = windowMsOf(scenario) * 1000
  const beginning = windowMicros * BEGINNING_WINDOWS
  const clock = new SimulatedClock(beginning)
  const limiter = createLimiter({ ...rule, clock })
  const decide = limiter.holdsSlots ? slotDecider(limiter, scenario.holdMs * 1000) : unitDecider(limiter)
  const columns = new Columns(lengthMicros)
  const [admitted, denied, remaining] = [columns.empty(), columns.empty(), columns.empty()]
  const passedAt: number[] = []
  let longestDelayMs = 0
  let next = 0
  for (let column = 0; column < RESULT_COLUMNS; column++) {
    const end = columns.endOf(column)
    for (; next < arrivals.length && arrivals[next]! <= end; next++) {
      const at = arrivals[next]!
      clock.moveTo(beginning + at)
      const delayMs = decide.at(at)
      if (delayMs === undefined) {
        columns.count(denied, at)
      } else {
        columns.count(admitted, at + delayMs * 1000)
        passedAt.push(at + delayMs * 1000)
        longestDelayMs = Math.max(longestDelayMs, delayMs)
      }
    }
    clock.moveTo(beginning + end)
    decide.release(end)
    remaining[column] = limiter.peek(KEY).remaining
  }
  const worst = worstWindow(passedAt, windowMicros)
  return {
    algorithm,
    rule,
    admitted,
    denied,
    remaining,
    admittedCount: passedAt.length,
    deniedCount: arrivals.length - passedAt.length,
    worstWindow: worst.count,
    worstColumn: (worst.start * RESULT_COLUMNS) / lengthMicros,
    longestDelayMs,
  }
}

/** Asks about one call. */
interface Decider {
  /** Milliseconds that the call waits for its turn, usually 0; undefined when it is denied. */
  at(micros: number): number | undefined
  /** Gives back what calls that have ended by then held. */
  release(micros: number): void
}

function unitDecider(limiter: Limiter<'sync'>): Decider {
  return {
    at: () => {
      const decision = limiter.check(KEY)
      return decision.allowed ? decision.delayMs : undefined
    },
    release: () => undefined,
  }
}

/** Calls hold a slot while they last. All last equally long, so they end in the order in which they began. */
function slotDecider(limiter: Limiter<'sync'>, holdMicros: number): Decider {
  const held: { readonly endsAt: number; readonly release: () => void }[] = []
  const release = (micros: number): void => {
    while (held.length > 0 && held[0]!.endsAt <= micros) held.shift()!.release()
  }
  return {
    at: (micros) => {
      release(micros)
      const slot = limiter.reserve(KEY)
      if (!('release' in slot)) return undefined
      held.push({ endsAt: micros + holdMicros, release: () => void slot.release() })
      return 0
    },
    release,
  }
}

/** The most instants within any half-open span of this length, and where it begins. Instants are in order. */
export function worstWindow(
  instants: readonly number[],
  length: number,
): { readonly count: number; readonly start: number } {
  let worst = { count: 0, start: 0 }
  let first = 0
  for (let last = 0; last < instants.length; last++) {
    while (instants[last]! - instants[first]! >= length) first++
    const count = last - first + 1
    if (count > worst.count) worst = { count, start: instants[first]! }
  }
  return worst
}
