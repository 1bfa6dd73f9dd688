import type { RateLimitOptions } from './rate-limit-options.ts'
import { RULE_FIELDS } from './rate-limit-options.ts'

/** Sources of limits other than the fields of one rule. */
const SOURCES = ['rules', 'limiter', 'engine', 'check'] as const

/** Sources that keep their own counters. */
const STORELESS = ['limiter', 'engine', 'check'] as const

/** Options that define limits. All others, including the name, define how limits are applied. */
const LIMIT_OPTIONS: ReadonlySet<string> = new Set([...RULE_FIELDS, ...SOURCES, 'identify'])

/** Options of any framework. */
type AnyOptions = Pick<RateLimitOptions<never>, (typeof SOURCES)[number] | 'store' | 'name'>

/** Whether options define limits, not only how they are applied. */
export function definesLimits(options: AnyOptions): boolean {
  return Object.keys(options).some((option) => LIMIT_OPTIONS.has(option))
}

/** Whether the counters of these options are kept in a store. */
export function usesStore(options: AnyOptions): boolean {
  return STORELESS.every((source) => options[source] === undefined)
}

/**
 * Options of a route, based on those of the app. Missing options are inherited, but limits only as a whole: a route
 * that defines any part of a limit inherits none. Its rule is called `name` unless it has one. A route without limits
 * counts together with the app.
 */
export function routeOptions<Options extends AnyOptions>(app: Options, route: Options, name?: string): Options {
  if (!definesLimits(route)) {
    const together = isOneRule(app) ? { name: route.name ?? app.name ?? 'default' } : undefined
    return { ...app, ...route, ...together }
  }
  const inherited = Object.entries(app).filter(
    ([option]) => !LIMIT_OPTIONS.has(option) && option !== 'name' && (option !== 'store' || usesStore(route)),
  )
  const named = isOneRule(route) && name !== undefined ? { name } : undefined
  return { ...named, ...(Object.fromEntries(inherited) as Options), ...route }
}

/** Whether the limit is one rule, written as fields of the options. */
export function isOneRule(options: AnyOptions): boolean {
  return SOURCES.every((source) => options[source] === undefined)
}
