import type { RateLimitOptions } from './rate-limit-options.ts'
import { RULE_FIELDS } from './rate-limit-options.ts'

/** Where limits come from when it is not the fields of one rule. */
const SOURCES = ['rules', 'limiter', 'engine', 'check'] as const

/** Those that keep counters themselves, and leave nothing to a store. */
const STORELESS = ['limiter', 'engine', 'check'] as const

/** What says which limits hold. All else says how they are applied; so does the name, to another count of the same limit. */
const LIMIT_OPTIONS: ReadonlySet<string> = new Set([...RULE_FIELDS, ...SOURCES, 'identify'])

/** Options for some framework; which one does not matter here. */
type AnyOptions = Pick<RateLimitOptions<never>, (typeof SOURCES)[number] | 'store' | 'name'>

/** Whether options say which limits hold, and not only how they are applied. */
export function definesLimits(options: AnyOptions): boolean {
  return Object.keys(options).some((option) => LIMIT_OPTIONS.has(option))
}

/** Whether counters of these options are kept in a store. */
export function usesStore(options: AnyOptions): boolean {
  return STORELESS.every((source) => options[source] === undefined)
}

/**
 * The options of a route inside an app that has some too. What the route does not say is as in the app, except that limits are
 * taken over as a whole: a route that brings any part of a limit has none of the app's. Its rule is called `name` when it does
 * not name it. A route without limits of its own counts together with the app, and says so by its name.
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

/** Whether the limit is one rule, written as the options themselves. */
export function isOneRule(options: AnyOptions): boolean {
  return SOURCES.every((source) => options[source] === undefined)
}
