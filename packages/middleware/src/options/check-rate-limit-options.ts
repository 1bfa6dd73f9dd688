import { HEADER_PROFILES } from '@sluice/contract'
import { SluiceError } from '@sluice/core'
import { assertStore } from '@sluice/core/internal'
import { ANY, COST, can, FLAG, FUNCTION, isWhole, OBJECT, type OptionForm } from '@sluice/core/options'
import { detectFramework, importHint } from './framework-detection.ts'
import { optionHint } from './option-hints.ts'
import type { RateLimitOptions, RuleFields } from './rate-limit-options.ts'
import { RULE_FIELDS } from './rate-limit-options.ts'

const KEY: OptionForm = {
  expected: '"ip" or a function such as (request) => request.user?.id',
  accepts: (value) => value === 'ip' || FUNCTION.accepts(value),
}

const NAME: OptionForm = {
  expected: 'a non-empty string',
  accepts: (value) => typeof value === 'string' && value !== '',
}

/** Options other than rule fields. Options that are validated when compiled accept anything here. */
const FORMS: Readonly<Record<Exclude<keyof RateLimitOptions<unknown>, keyof RuleFields> | 'onLimited', OptionForm>> = {
  rules: {
    expected: 'an object of rules by their names',
    accepts: (value) => OBJECT.accepts(value) && !Array.isArray(value),
  },
  limiter: {
    expected: 'a limiter, such as createLimiter({ limit: 100, window: "1m" })',
    accepts: (value) => can(value, 'checkAll'),
  },
  engine: { expected: 'an engine, such as new PolicyEngine({ store })', accepts: (value) => can(value, 'check') },
  identify: FUNCTION,
  check: FUNCTION,
  store: ANY,
  name: NAME,
  key: KEY,
  trustProxy: ANY,
  ipv6: ANY,
  cost: COST,
  actualCost: FUNCTION,
  refund: {
    expected: 'a list of statuses such as [500, 503], with 0 for no answer, or a function',
    accepts: (value) =>
      FUNCTION.accepts(value) || (Array.isArray(value) && value.every((status) => isWhole(status, 0, 599))),
  },
  skip: FUNCTION,
  shadow: FLAG,
  headers: {
    expected: `one of ${HEADER_PROFILES.join(', ')}`,
    accepts: (value) => HEADER_PROFILES.some((profile) => profile === value),
  },
  jitter: {
    expected: 'a number from 0 to below 1',
    accepts: (value) => typeof value === 'number' && value >= 0 && value < 1,
  },
  status: { expected: 'a status from 400 to 599', accepts: (value) => isWhole(value, 400, 599) },
  onDecision: FUNCTION,
  onError: FUNCTION,
  onLimited: FUNCTION,
  warn: FUNCTION,
  clock: {
    expected: 'an object such as { nowMicros: () => Date.now() * 1000 }',
    accepts: (value) => can(value, 'nowMicros'),
  },
  random: { expected: 'an object such as { nextUint32: () => number }', accepts: (value) => can(value, 'nextUint32') },
  timers: {
    expected: 'an object such as { schedule: (delayMs, run) => cancel }',
    accepts: (value) => can(value, 'schedule'),
  },
}

type Source = 'the fields of a rule' | '"rules"' | '"limiter"' | '"engine"' | '"check"'

/** For each source of limits: options without effect, and what to do instead. */
const MISPLACED: Readonly<Record<Source, readonly (readonly [option: string, action: string])[]>> = {
  'the fields of a rule': [['identify', 'It says who calls when there is an "engine"; use "key".']],
  '"rules"': [
    ['identify', 'It says who calls when there is an "engine"; use "key".'],
    ['name', 'Each of the rules has its name.'],
  ],
  '"limiter"': [
    ['store', 'The limiter has its store: pass it to createLimiter.'],
    ['name', 'The limiter has its name: pass it to createLimiter.'],
    ['identify', 'It says who calls when there is an "engine"; use "key".'],
  ],
  '"engine"': [
    ['store', 'The engine has its store.'],
    ['name', 'The rules of the engine have their names.'],
    ['key', 'Say who calls with "identify"; the rules say who is counted.'],
    ['ipv6', 'The engine has its "ipv6PrefixLength".'],
  ],
  '"check"': [
    ['store', 'The function decides where counters live.'],
    ['name', 'The function says the name of the rule.'],
    ['identify', 'It says who calls when there is an "engine"; use "key".'],
    ['refund', 'What the function charged cannot be given back from here.'],
    ['actualCost', 'What the function charged cannot be changed from here.'],
  ],
}

/** The adapter, as far as validation needs it. */
export interface OptionOwner {
  readonly name: string
  readonly ownOptions?: readonly string[]
}

/**
 * Throws `SLUICE_INVALID_OPTION` for unknown, invalid, missing or contradictory options. Rules are validated when
 * compiled.
 */
export function checkOptions(options: RateLimitOptions<never>, { name, ownOptions = [] }: OptionOwner): void {
  checkShape(options, name)
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined || ownOptions.includes(option) || RULE_FIELDS.some((field) => field === option)) continue
    if (!Object.hasOwn(FORMS, option)) throw unknownOption(option, value, ownOptions)
    const form = FORMS[option as keyof typeof FORMS]
    if (!form.accepts(value)) throw invalid(`"${option}" cannot be used`, { received: value, expected: form.expected })
  }
  if (options.store !== undefined) assertStore(options.store)
  const source = sourceOf(options)
  for (const [option, action] of MISPLACED[source]) {
    if (option in options && options[option as keyof typeof options] !== undefined) {
      throw invalid(`"${option}" has no effect beside ${source}`, { expected: 'one of them', action })
    }
  }
  checkUses(options)
}

/**
 * Throws `SLUICE_INVALID_OPTION` if the value is not an options object. For adapters that split options before {@link
 * checkOptions}. `name` is the framework.
 */
export function checkShape(options: unknown, name: string): void {
  if (!OBJECT.accepts(options)) {
    throw invalid(`the limiter for ${name} needs options`, { received: options, ...EXAMPLE })
  }
  const form = detectFramework(options)
  if (form !== undefined) {
    const isForeign = form.framework !== undefined && form.framework !== name
    throw invalid(`the limiter for ${name} was given ${isForeign ? form.what : 'a request'} in place of options`, {
      ...EXAMPLE,
      action: isForeign
        ? importHint(form.framework)
        : 'Call it once, where the app is set up, and pass on what it returns: rateLimit({ limit: 100, window: ' +
          '"1m" }).',
    })
  }
  const mistaken = MISTAKEN.find(({ fits }) => fits(options))
  if (mistaken === undefined) return
  throw invalid(`the limiter for ${name} was given ${mistaken.what} in place of options`, {
    ...EXAMPLE,
    action: mistaken.action,
  })
}

/** Objects that are passed in place of options. */
const MISTAKEN: readonly { readonly what: string; readonly action: string; fits(value: unknown): boolean }[] = [
  {
    what: 'a list',
    action: 'Write the limit itself: { limit: 100, window: "1m" }. Several at once are "rules", by their names.',
    fits: Array.isArray,
  },
  { what: 'a promise', action: 'Await it first.', fits: (value) => can(value, 'then') },
  { what: 'a store', action: 'Write: { limit: 100, window: "1m", store }.', fits: (value) => can(value, 'decide') },
  { what: 'a limiter', action: 'Write: { limiter }.', fits: (value) => can(value, 'tryAcquire') },
  {
    what: 'a limiter with several rules',
    action: 'Write: { limiter, rules: { perUser: {} } }, with the names of those to ask.',
    fits: (value) => can(value, 'checkAll'),
  },
  { what: 'an engine', action: 'Write: { engine }.', fits: (value) => can(value, 'check') && can(value, 'report') },
]

const EXAMPLE = { expected: 'a limit such as { limit: 100, window: "1m" }, or "rules", "limiter", "engine" or "check"' }

/** The source of the limits. */
function sourceOf(options: RateLimitOptions<never>): Source {
  const { rules, limiter, engine, check } = options
  const sources: Source[] = []
  if (RULE_FIELDS.some((field) => options[field] !== undefined)) sources.push('the fields of a rule')
  if (rules !== undefined && limiter === undefined) sources.push('"rules"')
  if (limiter !== undefined) sources.push('"limiter"')
  if (engine !== undefined) sources.push('"engine"')
  if (check !== undefined) sources.push('"check"')
  const [source, other] = sources
  if (source === undefined) throw invalid('there is no limit', EXAMPLE)
  if (other === undefined) return source
  throw invalid(`limits come from ${sources.join(' and ')}`, {
    expected: 'one of them',
    action: 'To decide several limits at once, put all of them into "rules".',
  })
}

/** Validates key and cost of each rule, and what the limiter supports. */
function checkUses({ rules, limiter, ipv6, actualCost }: RateLimitOptions<never>): void {
  const isSet = limiter !== undefined && 'limiter' in limiter
  if (limiter !== undefined && isSet !== (rules !== undefined)) {
    throw invalid(isSet ? 'the limiter has several rules' : 'the limiter has one rule, so "rules" has no effect', {
      expected: isSet
        ? '"rules" with the names of those to ask, such as { perUser: {}, perIp: { key: "ip" } }'
        : 'no "rules"',
    })
  }
  if (isSet && actualCost !== undefined && Object.keys(rules ?? {}).length > 1) {
    throw invalid('"actualCost" has no effect on several rules of a limiter', {
      expected: 'the rules themselves',
      action: 'Pass "rules" and "store" in place of "limiter".',
    })
  }
  if (limiter !== undefined && ipv6?.tiers !== undefined) {
    throw invalid('"ipv6.tiers" has no effect on a limiter, which has its limits', {
      expected: 'the rule itself',
      action: 'Pass the rule and the "store" in place of "limiter".',
    })
  }
  for (const [name, use] of Object.entries(rules ?? {})) checkUse(name, use, isSet)
  if (rules !== undefined && Object.keys(rules).length === 0) throw invalid('"rules" is empty', EXAMPLE)
}

function checkUse(name: string, use: unknown, isSet: boolean): void {
  if (!OBJECT.accepts(use)) throw invalid(`the rule "${name}" cannot be used`, { received: use, expected: 'an object' })
  const { key, cost, ...rule } = use as { readonly key?: unknown; readonly cost?: unknown }
  const unknown = Object.keys(rule).find((part) => !RULE_FIELDS.includes(part as keyof RuleFields))
  if (unknown !== undefined) throw unknownPart(name, unknown)
  const wrong = [
    { part: 'key', value: key, form: KEY },
    { part: 'cost', value: cost, form: COST },
  ].find(({ value, form }) => value !== undefined && !form.accepts(value))
  if (wrong !== undefined) {
    const { part, value, form } = wrong
    throw invalid(`"${part}" of the rule "${name}" cannot be used`, { received: value, expected: form.expected })
  }
  const [field] = Object.keys(rule)
  if (!isSet || field === undefined) return
  throw invalid(`"${field}" of the rule "${name}" has no effect, because the limiter has its limits`, {
    expected: 'only key and cost',
    action: 'Pass the limits to createLimiter, or "rules" without "limiter".',
  })
}

/** Error for an unknown field of a rule, often one that applies to all rules. */
function unknownPart(rule: string, part: string): SluiceError {
  const known = [...RULE_FIELDS, 'key', 'cost']
  const advice = Object.hasOwn(FORMS, part)
    ? `It is for all rules together: put it beside "rules".`
    : optionHint(part, known)
  const action = part === 'name' ? `The rule has its name: it is "${rule}".` : advice
  return new SluiceError('SLUICE_INVALID_RULE', {
    problem: `the rule "${rule}" has no option "${part}"`,
    expected: action === undefined ? `only ${known.join(', ')}` : 'a known one',
    ...(action === undefined ? {} : { action }),
  })
}

function unknownOption(option: string, value: unknown, ownOptions: readonly string[]): SluiceError {
  const known = [...RULE_FIELDS, ...Object.keys(FORMS), ...ownOptions]
  const action = isRule(value)
    ? `Write the limit itself: { limit: 100, window: "1m" }. Several at once are "rules": { "${option}": { limit: ` +
      '100, window: "1m" } }.'
    : optionHint(option, known)
  return invalid(`there is no option "${option}"`, {
    expected: action === undefined ? `one of ${known.join(', ')}` : 'a known one',
    ...(action === undefined ? {} : { action }),
  })
}

function invalid(
  problem: string,
  details: { readonly received?: unknown; readonly expected: string; readonly action?: string },
): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', { problem, ...details })
}

/** Whether a value looks like a limit. Other libraries use named limits as options. */
function isRule(value: unknown): boolean {
  return OBJECT.accepts(value) && ['limit', 'window', 'ttl'].some((field) => Object.hasOwn(value as object, field))
}
