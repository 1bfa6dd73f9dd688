import { durationMs } from '../../rule/duration.ts'
import type { CalendarWindow, Units, WindowSpec } from '../../rule/rule.ts'
import { CALENDAR_DEFAULTS, DEFAULT_ALGORITHM, WEEKDAYS } from '../../rule/rule-options.ts'
import type { PolicyRule, RequestMatch, ScheduleEntry, Tier } from './rule-set.ts'

type WindowLength = WindowSpec['window'] | CalendarWindow

/** A rule whose algorithm is known by its options; which of them are there depends on the algorithm. */
interface RuleNumbers {
  readonly limit?: Units
  readonly window?: WindowLength
  readonly windows?: readonly WindowSpec<WindowLength>[]
  readonly burst?: number | { readonly capacity: number; readonly refillPerSecond: number }
  readonly capacity?: Units
  readonly refillPerSecond?: number
  readonly leakPerSecond?: number
  readonly ratePerSecond?: number
  readonly rollover?: boolean
  readonly segments?: number
  readonly lease?: WindowSpec['window']
}

/**
 * A rule in plain sentences, for people who do not know the algorithms. The first sentence says who may call what how
 * often, such as "Each user may call POST /orders 100 times a minute, in bursts of up to 20."; the others say under
 * which conditions. The rule must have been checked.
 */
export function describeRule(rule: PolicyRule): readonly string[] {
  return [sentence(allowance(rule)), ...conditions(rule).map(sentence)]
}

/** What a tier means for its members, in one sentence. The tier must have been checked. */
export function describeTier({ multiplier = 1, burst = 0, entitled = false, rules = [] }: Tier): string {
  const parts = [
    multiplier === 1 ? 'the limits that hold for all' : `${numeral(multiplier)} times the limits that hold for all`,
    ...(burst > 0 ? [`${numeral(burst)} more calls at once`] : []),
    ...(entitled ? ['the bursts of hybrid rules'] : []),
    ...(rules.length > 0
      ? [rules.length === 1 ? '1 rule of their own' : `${numeral(rules.length)} rules of their own`]
      : []),
  ]
  return `Members have ${list(parts, 'and')}.`
}

/** Which requests an exemption or an entry of the deny list is for, as the rest of a sentence. */
export function describeMatch(match: RequestMatch): string {
  const { resource, methods, dimension, entities = [], cidrs = [], services = [] } = match
  const parts = [
    resource === undefined && methods === undefined
      ? 'all calls'
      : `calls of ${calledResource(resource ?? '*', methods)}`,
    ...(entities.length > 0
      ? [`by ${dimension === undefined ? '' : `${noun(dimension)} `}${list(entities, 'or')}`]
      : []),
    ...(cidrs.length > 0 ? [`from ${list(cidrs, 'or')}`] : []),
    ...(services.length > 0 ? [`by the service ${list(services, 'or')}`] : []),
  ]
  return parts.join(' ')
}

/** Who may call what how often. */
function allowance(rule: PolicyRule): string {
  const { algorithm = DEFAULT_ALGORITHM, resource, methods, dimension } = rule
  const numbers: RuleNumbers = rule as RuleNumbers
  const who = subject(dimension)
  const what = calledResource(resource, methods)
  const most = numbers.capacity ?? numbers.limit
  if (most === 'off') return `${who} may call ${what} without a limit`
  if (most === 0) return `${who} may not call ${what} at all`
  switch (algorithm) {
    case 'concurrency':
      return (
        `${who} may have ${times(most!, 'call', 'calls')} of ${what} in progress at once; a call that is not renewed ` +
        `within ${lengthOf(numbers.lease!)} no longer counts`
      )
    case 'token-bucket':
      return `${who} may call ${what} ${rate(numbers.refillPerSecond!)}, in bursts of up to ${saved(numbers)}`
    case 'leaky-bucket-meter':
      return `${who} may call ${what} ${rate(numbers.leakPerSecond!)}, in bursts of up to ${numeral(most!)}`
    case 'leaky-bucket-queue':
      return (
        `${who} may call ${what} ${rate(numbers.ratePerSecond!)}, at an even pace; up to ${numeral(most!)} calls ` +
        'wait for their turn, more are denied'
      )
    case 'hybrid':
      return (
        `${who} may call ${what} ${frequency(most!, numbers.window!, 'a')}; callers that are entitled to bursts may ` +
        `make ${burstBucket(numbers.burst)}`
      )
    default:
      return `${who} may call ${what} ${windowTerms(algorithm, numbers)}`
  }
}

function burstBucket(burst: RuleNumbers['burst']): string {
  if (typeof burst !== 'object') return 'more'
  const pace = rate(burst.refillPerSecond).replace(/ times?\b/, '')
  return `up to ${numeral(burst.capacity)} more, which come back ${pace}`
}

/** Up to twice the capacity with what rolls over. */
function saved({ capacity, rollover }: RuleNumbers): string {
  const most = capacity as number
  return rollover === true ? `${numeral(most)}, or ${numeral(2 * most)} after a quiet time` : numeral(most)
}

/** How the windows of an algorithm are counted. */
const COUNTED: Readonly<Record<string, string>> = {
  'fixed-window': ', counted anew in each window',
  'sliding-window-counter': ', estimated from two counts',
  'sliding-window-log': ', counted exactly',
}

/** "100 times a minute", or "in any minute" where the window slides; several windows are joined. */
function windowTerms(algorithm: string, numbers: RuleNumbers): string {
  const { windows, limit, window, burst, rollover, segments } = numbers
  const own = { limit, window, ...(typeof burst === 'number' && { burst }) }
  const all = windows ?? [own as WindowSpec<WindowLength>]
  const article = algorithm.startsWith('sliding') ? 'in any' : 'a'
  const terms = all.map((spec) => {
    const at = frequency(spec.limit, spec.window, article)
    if (spec.burst === undefined || spec.burst === spec.limit) return at
    return windows === undefined
      ? `${at}, in bursts of up to ${numeral(spec.burst)}`
      : `${at} (bursts of up to ${numeral(spec.burst)})`
  })
  const counted = segments === undefined ? (COUNTED[algorithm] ?? '') : `, counted in ${numeral(segments)} parts`
  const unused = rollover === true ? '; unused calls carry over to the next window, up to twice the limit in all' : ''
  return `${list(terms, 'and')}${counted}${unused}`
}

/** What holds besides the numbers, one sentence each. */
function conditions(rule: PolicyRule): readonly string[] {
  const { shadow, percent, enabled, always, schedule = [], regions, incident, errorRate, penalty, failureMode } = rule
  return [
    ...(enabled === false ? ['Switched off: the rule has no effect'] : []),
    ...(shadow === true ? ['In shadow: it is measured and never denies'] : []),
    ...(percent !== undefined && percent < 100
      ? [`Enforced for ${numeral(percent)}% of callers, measured for the others`]
      : []),
    ...(always === true ? ['It holds beside the other rules for the same callers'] : []),
    ...costCondition(rule.cost),
    ...schedule.map(scheduled),
    ...(regions === undefined ? [] : [`By region: ${list(multipliers(regions), 'and')}`]),
    ...(incident === undefined || incident === 1 ? [] : [`During an incident: ${multiplied(incident)}`]),
    ...(errorRate === undefined
      ? []
      : [
          `While more than ${numeral(errorRate.cutAbove * 100)}% of calls fail, the limit is cut step by step, at ` +
            `most to ${numeral(errorRate.least * 100)}%`,
        ]),
    ...(penalty === undefined
      ? []
      : [
          `After ${times(penalty.after, 'denial', 'denials')} within ${lengthOf(penalty.within)} a caller is blocked ` +
            `for ${lengthOf(penalty.block)}${penalty.growth === 1 ? '' : ', longer each time'}`,
        ]),
    ...(failureMode === undefined ? [] : [`While the store is unavailable, ${WITHOUT_STORE[failureMode]}`]),
  ]
}

const WITHOUT_STORE = {
  open: 'all calls are allowed',
  closed: 'all calls are denied',
  local: 'each node decides with its share of the limit',
} as const

function costCondition(cost: PolicyRule['cost']): readonly string[] {
  if (cost === undefined || cost === 1) return []
  if (typeof cost === 'number') return [`Each call counts as ${numeral(cost)}`]
  if ('function' in cost) return [`The function ${cost.function} says what a call counts as`]
  const { per = 1, descriptor } = cost
  return [`Each call counts as its ${descriptor}${per === 1 ? '' : ` divided by ${numeral(per)}, rounded up`}`]
}

function scheduled({ days, from, to, timeZone, multiplier }: ScheduleEntry): string {
  const when = days === undefined || days.length === 7 ? 'every day' : `on ${list(inWeekOrder(days), 'and')}`
  const span = from === to ? `for a day from ${from}` : `from ${from} to ${to}`
  return `${when} ${span} (${timeZone ?? CALENDAR_DEFAULTS.timeZone}): ${multiplied(multiplier)}`
}

/** Monday first. */
function inWeekOrder(days: readonly (typeof WEEKDAYS)[number][]): readonly string[] {
  const order = (day: (typeof WEEKDAYS)[number]) => (WEEKDAYS.indexOf(day) + 6) % 7
  return [...days].sort((one, other) => order(one) - order(other)).map(capital)
}

function multipliers(regions: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(regions).map(([region, multiplier]) => `${region} ${multiplied(multiplier)}`)
}

function multiplied(multiplier: number): string {
  return multiplier === 1 ? 'the same limit' : `${numeral(multiplier)} times the limit`
}

const SUBJECTS: Readonly<Record<string, string>> = {
  ip: 'IP address',
  user: 'user',
  apiKey: 'API key',
  tenant: 'tenant',
  service: 'internal service',
}

function noun(dimension: string): string {
  return SUBJECTS[dimension] ?? dimension
}

function subject(dimension: string): string {
  if (dimension === 'global') return 'All callers together'
  const names = dimension.split('+').filter((name) => name !== 'global')
  return names.length === 1 ? `Each ${noun(names[0]!)}` : `Each combination of ${list(names.map(noun), 'and')}`
}

function calledResource(resource: string, methods: readonly string[] | undefined): string {
  const method =
    methods === undefined
      ? ''
      : `${list(
          methods.map((name) => name.toUpperCase()),
          'or',
        )} `
  if (resource === '*') return method === '' ? 'all resources' : `${method}on all resources`
  if (!resource.endsWith('/*')) return `${method}${resource}`
  const base = resource.slice(0, -2)
  return base === '' ? `${method}/ and all below` : `${method}${base} and all below`
}

const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [604_800_000, 'week'],
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1000, 'second'],
  [1, 'millisecond'],
]

/** "100 times a minute", "once every 30 seconds", "5 times in any 2 hours". */
function frequency(limit: number, window: WindowLength, article: 'a' | 'in any'): string {
  const count = occurrences(limit)
  if (typeof window === 'object') {
    const { calendar, timeZone = CALENDAR_DEFAULTS.timeZone } = window
    return `${count} a calendar ${calendar} (${timeZone})`
  }
  const length = lengthOf(window)
  const [, unit] = /^1 (\w+)$/.exec(length) ?? []
  if (article === 'in any') return `${count} in any ${unit ?? length}`
  return unit === undefined ? `${count} every ${length}` : `${count} ${unit === 'hour' ? 'an' : 'a'} ${unit}`
}

/** A rate in the smallest unit of time in which it is 1 or more. */
function rate(perSecond: number): string {
  const [ms, unit] =
    [...UNITS].reverse().find(([length]) => length >= 1000 && (perSecond * length) / 1000 >= 1) ?? UNITS[0]!
  const count = Math.round((perSecond * ms) / 10) / 100
  return `${occurrences(count)} ${unit === 'hour' ? 'an' : 'a'} ${unit}`
}

function occurrences(count: number): string {
  if (count === 0) return 'not at all'
  return count === 1 ? 'once' : `${numeral(count)} times`
}

/** "1 minute", "1 hour 30 minutes". */
function lengthOf(duration: WindowSpec['window']): string {
  let rest = durationMs(duration, 'window')
  const parts: string[] = []
  for (const [ms, name] of UNITS) {
    // Weeks only where the length is whole weeks: "10 days" is clearer than "1 week 3 days".
    if (name === 'week' && rest % ms !== 0) continue
    const count = name === 'millisecond' ? rest : Math.floor(rest / ms)
    rest -= count * ms
    if (count > 0) parts.push(`${numeral(count)} ${name}${count === 1 ? '' : 's'}`)
  }
  return parts.join(' ')
}

function times(count: number, one: string, many: string): string {
  return `${numeral(count)} ${count === 1 ? one : many}`
}

/** With separators of thousands, the same for every reader. */
function numeral(value: number): string {
  const [whole = '', fraction] = String(Math.round(value * 1e6) / 1e6).split('.')
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, ',')
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}

function list(parts: readonly string[], word: 'and' | 'or'): string {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} ${word} ${parts.at(-1)}`
}

function sentence(text: string): string {
  return `${capital(text)}.`
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
