import { parseArgs } from 'node:util'
import type { StoreTable } from './targets/store-targets.ts'
import { HarnessError } from './tests/harness-error.ts'
import type { TestedAlgorithm } from './tests/tested-algorithms.ts'

/** How the harness runs. */
export interface HarnessOptions {
  readonly threads: number
  readonly attempts: number
  readonly algorithms: readonly TestedAlgorithm[]
  /** Values of MaxRequests, in the order of the report. */
  readonly maxRequests: readonly number[]
  /** Name of a store in the table. */
  readonly store: string
  /** The Redis to run on, for a store that takes it. */
  readonly redisUrl: string | undefined
  /** URL of a service, or path of a module, to test instead of a store. */
  readonly target: string | undefined
  readonly json: boolean
  /** Print the help instead. */
  readonly help: boolean
}

/** What can be chosen from. */
export interface Choices {
  readonly algorithms: readonly TestedAlgorithm[]
  readonly stores: StoreTable
}

interface WholeRange {
  readonly least: number
  readonly most: number
}

const THREADS: WholeRange = { least: 1, most: 64 }
const ATTEMPTS: WholeRange = { least: 1, most: 1_000_000 }

// The largest for which every algorithm has room in the shared memory store: concurrency takes 3 values for each unit.
const MAX_REQUESTS: WholeRange = { least: 1, most: 5000 }

const DEFAULTS = { threads: '8', attempts: '5000', max: '100,500,1000' }

const OPTION_TYPES = {
  threads: { type: 'string' },
  attempts: { type: 'string' },
  algorithms: { type: 'string' },
  max: { type: 'string' },
  store: { type: 'string' },
  'redis-url': { type: 'string' },
  target: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean' },
} as const

type OptionName = keyof typeof OPTION_TYPES

/**
 * The options in the arguments of a command line; of an option given twice the last counts. Throws
 * `SLUICE_HARNESS_INVALID_OPTION` for the first that is unknown or has a value that cannot be used.
 */
export function parseOptions(args: readonly string[], { algorithms, stores }: Choices): HarnessOptions {
  const given = readGiven(args)
  const algorithmNames = algorithms.map(({ name }) => name)
  const chosen = listOf(given.get('algorithms') ?? algorithmNames.join(), (name) =>
    oneOf('algorithms', name, algorithmNames),
  )
  const storeNames = Object.keys(stores)
  const store = oneOf('store', given.get('store') ?? storeNames[0]!, storeNames)
  return {
    threads: wholeNumber('threads', given.get('threads') ?? DEFAULTS.threads, THREADS),
    attempts: wholeNumber('attempts', given.get('attempts') ?? DEFAULTS.attempts, ATTEMPTS),
    algorithms: algorithms.filter(({ name }) => chosen.includes(name)),
    maxRequests: listOf(given.get('max') ?? DEFAULTS.max, (text) => wholeNumber('max', text, MAX_REQUESTS)),
    store,
    redisUrl: redisUrlFor(store, given.get('redis-url'), stores),
    target: targetOf(given),
    json: given.has('json'),
    help: given.has('help'),
  }
}

/** What to print for `--help`. */
export function helpText({ algorithms, stores }: Choices): string {
  const storeLines = Object.entries(stores).map(([name, { summary }], index) => {
    return `                     ${name.padEnd(8)}${summary}${index === 0 ? ' (default)' : ''}`
  })
  return `Counts what every algorithm approves under concurrent requests, and compares it with its limit: exactly as
many must be approved, not one more or less.

Usage: sluice harness [options], or npm run harness -- [options] in the repository

  --threads n        threads, or processes with --store redis, ${rangeText(THREADS)} (${DEFAULTS.threads})
  --attempts n       simultaneous attempts of the race test, ${rangeText(ATTEMPTS)} (${DEFAULTS.attempts})
  --algorithms a,b   only these, of:
${algorithms.map(({ name }) => `                     ${name}`).join('\n')}
  --max a,b          values of MaxRequests, each ${rangeText(MAX_REQUESTS)} (${DEFAULTS.max})
  --store name       where the counters are:
${storeLines.join('\n')}
  --redis-url url    with --store redis: run on this Redis, under keys that begin with sluice-harness- and are removed
  --target url|path  test a running service or a module instead of a store (see below)
  --json             print the counts as a JSON array; with "npm run --silent", nothing else is printed
  --help             print this

RaceTest releases all threads at one instant on one node. AccuracyTest makes its requests, moves on to the announced
reset, and makes them again. DistributedTest asks for many nodes from all threads. A thread steps aside for a moment
after every few approvals, so that all of them compete also where there are fewer cores than threads.

On Redis, processes take the place of threads, each with a connection of its own. They are released by a message to each
and make their requests a few at a time, so that those of all processes alternate. A request that Redis did not answer
ends the run: every count consists of decisions made in Redis.

The time that limits refill by is a clock of the harness, the same for all who ask: it stands still while requests are
made and moves only to the reset. So nothing refills meanwhile, and each count has one right answer however slow the
machine is. Time= is real time: from the release to the last answer.

--target http://127.0.0.1:8080 tests a running service: --threads callers check over HTTP. Set SLUICE_API_KEY to a key
with the role editor or admin: the harness puts a tier, and a rule for each test, under the name sluice-harness-...,
resets counters by the admin API, and removes both. Windows are 30 days long: nothing refills in real time.

--target ./limiter.mjs tests any limiter. The module exports, as default, createLimiter or limiter, either a function
that returns a limiter for maxRequests, or one limiter, whose limit --max says. A limiter has tryAcquire(nodeId), which
returns true or false or a promise of it, and may have reset(nodeId). It must not refill while the tests run.

The last line of the report says how many of its blocks are exact: "30 of 30 exact".

Exit code: 0 when every count is exact, 1 when one is not or the run could not be finished (stderr says which or why),
2 for an option that cannot be used.`
}

/** The options as they stand in the arguments; those without a value have an empty one. */
function readGiven(args: readonly string[]): Map<OptionName, string> {
  const given = new Map<OptionName, string>()
  const { tokens } = parseArgs({ args: [...args], options: OPTION_TYPES, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    if (token.kind === 'positional') throw unknownOption(token.value)
    if (!isOptionName(token.name) || !token.rawName.startsWith('--')) throw unknownOption(token.rawName)
    const takesValue = OPTION_TYPES[token.name].type === 'string'
    if (takesValue !== (token.value !== undefined)) {
      throw invalid({
        received: takesValue ? `${token.rawName} without a value` : `${token.rawName}=${token.value}`,
        expected: takesValue ? `${token.rawName} with a value` : `${token.rawName} alone`,
      })
    }
    given.set(token.name, token.value ?? '')
  }
  return given
}

function isOptionName(name: string): name is OptionName {
  return Object.hasOwn(OPTION_TYPES, name)
}

/** The entries of a list with commas, each once. */
function listOf<T>(text: string, read: (entry: string) => T): T[] {
  return [...new Set(text.split(',').map((entry) => read(entry.trim())))]
}

function rangeText({ least, most }: WholeRange): string {
  return `${least} to ${most}`
}

function wholeNumber(option: OptionName, text: string, { least, most }: WholeRange): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw invalid({
    received: `--${option} ${JSON.stringify(text)}`,
    expected: `a whole number from ${rangeText({ least, most })}`,
  })
}

function oneOf(option: OptionName, text: string, names: readonly string[]): string {
  if (names.includes(text)) return text
  throw invalid({ received: `--${option} ${JSON.stringify(text)}`, expected: `one of ${names.join(', ')}` })
}

/** The Redis that was named, for a store that takes one. Messages do not show it: it may hold a password. */
function redisUrlFor(store: string, text: string | undefined, stores: StoreTable): string | undefined {
  if (text === undefined) return undefined
  if (stores[store]?.takesRedisUrl !== true) {
    const takers = Object.keys(stores).filter((name) => stores[name]?.takesRedisUrl === true)
    throw invalid({
      received: `--redis-url with --store ${store}`,
      expected: `it only with --store ${takers.join(' or ')}`,
    })
  }
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^\/?\d*$/.test(url.pathname)) {
    return text
  }
  throw invalid({
    received: '--redis-url with a value that cannot be read as one',
    expected: 'redis://[[user]:password@]host[:port][/database], or rediss:// for TLS',
  })
}

function targetOf(given: ReadonlyMap<OptionName, string>): string | undefined {
  const target = given.get('target')
  const other = (['store', 'redis-url'] as const).find((name) => given.has(name))
  if (target === undefined || other === undefined) return target
  throw invalid({ received: `--target with --${other}`, expected: 'one of them' })
}

function unknownOption(received: string): HarnessError {
  const names = Object.keys(OPTION_TYPES).map((name) => `--${name}`)
  return invalid({ received: JSON.stringify(received), expected: `one of ${names.join(', ')}` })
}

function invalid(details: { readonly received: string; readonly expected: string }): HarnessError {
  return new HarnessError('SLUICE_HARNESS_INVALID_OPTION', details)
}
