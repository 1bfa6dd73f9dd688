import type { Duration, Rule } from '@sluice/core'
import { durationMs } from '@sluice/core/internal'

/** The algorithms, in the order in which the playground offers them. */
export const ALGORITHMS = [
  'fixed-window',
  'sliding-window-counter',
  'sliding-window-log',
  'gcra',
  'token-bucket',
  'leaky-bucket-meter',
  'leaky-bucket-queue',
  'hybrid',
  'concurrency',
] as const

/** One of the algorithms. */
export type AlgorithmName = (typeof ALGORITHMS)[number]

/** The forms of traffic. */
export const SHAPES = ['steady', 'burst', 'boundary', 'drawn'] as const

/** One of the forms of traffic. */
export type Shape = (typeof SHAPES)[number]

/** Columns of a drawing. */
export const DRAWN_COLUMNS = 48

/** Highest level of a column of a drawing. */
export const HIGHEST_LEVEL = 35

/** The level at which a drawing has just the rate of the limit. */
export const LIMIT_LEVEL = 10

/** How many windows are simulated. */
export const SIMULATED_WINDOWS = 4

/** The largest number of calls that a scenario may have. */
export const MOST_CALLS = 20_000

/** A limit, calls, and the algorithms that decide about them. */
export interface Scenario {
  readonly algorithms: readonly AlgorithmName[]
  /** Calls in each window. */
  readonly limit: number
  /** A duration such as `10s`. */
  readonly window: string
  /** Calls at once, for the algorithms that know bursts. */
  readonly burst: number
  /** How long each call takes, for the algorithm that counts concurrent calls. */
  readonly holdMs: number
  readonly shape: Shape
  /** Calls in a second, for a steady stream and between bursts. */
  readonly rate: number
  /** Calls in each burst, and on each side of a boundary. */
  readonly size: number
  /** Levels by column, 0 to {@link HIGHEST_LEVEL}, of traffic that is drawn by hand. */
  readonly levels: readonly number[]
}

/** What the playground shows first: two bursts around a boundary, which a fixed window admits both. */
export const FIRST_SCENARIO: Scenario = {
  algorithms: ['fixed-window', 'sliding-window-counter', 'sliding-window-log', 'gcra'],
  limit: 20,
  window: '10s',
  burst: 20,
  holdMs: 1000,
  shape: 'boundary',
  rate: 3,
  size: 20,
  levels: Array.from({ length: DRAWN_COLUMNS }, (_, column) => (column % 12 < 3 ? 28 : 4)),
}

/** The length of the window of a scenario. */
export function windowMsOf({ window }: Pick<Scenario, 'window'>): number {
  return durationMs(window, 'window')
}

/** The rule of an algorithm that stands for the numbers of a scenario. */
export function ruleOf(algorithm: AlgorithmName, scenario: Scenario): Rule {
  const { limit, burst, holdMs } = scenario
  const window = scenario.window as Duration
  const perSecond = (limit * 1000) / windowMsOf(scenario)
  switch (algorithm) {
    case 'token-bucket':
      return { algorithm, capacity: burst, refillPerSecond: perSecond }
    case 'leaky-bucket-meter':
      return { algorithm, capacity: burst, leakPerSecond: perSecond }
    case 'leaky-bucket-queue':
      return { algorithm, capacity: burst, ratePerSecond: perSecond }
    case 'gcra':
      return { algorithm, limit, window, burst }
    case 'hybrid':
      return { algorithm, limit, window, burst: { capacity: burst, refillPerSecond: perSecond / 2 } }
    case 'concurrency':
      return { algorithm, limit, lease: holdMs + 1000 }
    default:
      return { algorithm, limit, window } as Rule
  }
}

/** The numbers of a scenario that are typed in. */
export type NumberFieldName = 'limit' | 'burst' | 'holdMs' | 'rate' | 'size'

interface NumberField {
  readonly least: number
  readonly most: number
  readonly isWhole: boolean
}

/** Bounds of the numbers of a scenario. */
export const NUMBER_FIELDS: Readonly<Record<NumberFieldName, NumberField>> = {
  limit: { least: 1, most: 2000, isWhole: true },
  burst: { least: 1, most: 2000, isWhole: true },
  holdMs: { least: 1, most: 60_000, isWhole: true },
  rate: { least: 0, most: 1000, isWhole: false },
  size: { least: 1, most: 2000, isWhole: true },
}

/** Longest window: longer ones make no other picture. */
const LONGEST_WINDOW_MS = 3_600_000

const SHORTEST_WINDOW_MS = 100

/** The scenario as the query of a link; what is as in {@link FIRST_SCENARIO} is left out. */
export function scenarioQuery(scenario: Scenario): string {
  const query = new URLSearchParams()
  const algorithms = scenario.algorithms.join(',')
  if (algorithms !== FIRST_SCENARIO.algorithms.join(',')) query.set('algorithms', algorithms)
  for (const name of ['shape', 'window', ...(Object.keys(NUMBER_FIELDS) as NumberFieldName[])] as const) {
    if (scenario[name] !== FIRST_SCENARIO[name]) query.set(name, String(scenario[name]))
  }
  if (scenario.shape === 'drawn') query.set('levels', scenario.levels.map((level) => level.toString(36)).join(''))
  return query.toString()
}

/** A scenario that was read from a link, and what of the link could not be used. */
export interface ReadScenario {
  readonly scenario: Scenario
  /** One sentence each; empty when all of the link was used. */
  readonly problems: readonly string[]
}

/** Reads the query of a link. A value that cannot be used is reported, and that of {@link FIRST_SCENARIO} is taken. */
export function readScenario(query: string | URLSearchParams): ReadScenario {
  const given = new URLSearchParams(query)
  const problems: string[] = []
  const take = <T>(name: string, parse: (text: string) => T | undefined, fallback: T): T => {
    const text = given.get(name)
    if (text === null) return fallback
    const value = parse(text)
    if (value === undefined) problems.push(`"${name}" of the link cannot be used: ${text.slice(0, 60)}`)
    return value ?? fallback
  }
  const first = FIRST_SCENARIO
  const numbers = Object.fromEntries(
    (Object.keys(NUMBER_FIELDS) as NumberFieldName[]).map((name) => [
      name,
      take(name, (text) => parseNumber(text, NUMBER_FIELDS[name]), first[name]),
    ]),
  ) as Pick<Scenario, NumberFieldName>
  const scenario: Scenario = {
    ...numbers,
    algorithms: take('algorithms', parseAlgorithms, first.algorithms),
    window: take('window', parseWindow, first.window),
    shape: take('shape', (text) => SHAPES.find((shape) => shape === text), first.shape),
    levels: take('levels', parseLevels, first.levels),
  }
  return { scenario, problems }
}

/** The number that a text is, when it is within bounds; for links and for fields that are being typed in. */
export function parseNumber(text: string, { least, most, isWhole }: NumberField): number | undefined {
  if (!/^\d{1,9}(?:\.\d{1,6})?$/.test(text)) return undefined
  const value = Number(text)
  return value < least || value > most || (isWhole && !Number.isInteger(value)) ? undefined : value
}

/** The window that a text is, as it was written; undefined when it is none that can be simulated. */
export function parseWindow(text: string): string | undefined {
  try {
    const ms = durationMs(text, 'window')
    return ms >= SHORTEST_WINDOW_MS && ms <= LONGEST_WINDOW_MS ? text : undefined
  } catch {
    return undefined
  }
}

function parseAlgorithms(text: string): readonly AlgorithmName[] | undefined {
  const names = text.split(',')
  const known = ALGORITHMS.filter((name) => names.includes(name))
  return known.length === names.length && known.length > 0 ? known : undefined
}

function parseLevels(text: string): readonly number[] | undefined {
  if (!/^[0-9a-z]+$/.test(text) || text.length !== DRAWN_COLUMNS) return undefined
  return Array.from(text, (letter) => Number.parseInt(letter, 36))
}
