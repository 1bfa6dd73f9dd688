import { parsePattern, type ResourcePattern, ruleName } from '@sluice/core/internal'
import type { PolicyRule, RuleSet } from '@sluice/core/policy'
import { DEFAULTS, type GatewayConfig, type RouteConfig } from './gateway-config.ts'

/** Something in a configuration that works and is likely not meant. */
export interface GatewayWarning {
  /**
   * `route-unlimited`: no rule is for its requests. `rule-unrouted`: no route leads to what a rule is for.
   * `upstream-unused`: no route leads to it. `priority-unused`: the upstream of a route has no limit of concurrency.
   */
  readonly code: 'route-unlimited' | 'rule-unrouted' | 'upstream-unused' | 'priority-unused'
  /** Name of the route, rule or upstream. */
  readonly subject: string
  /** A sentence that says what to do. */
  readonly message: string
}

/** What a rule or a route is for. */
interface Scope {
  readonly pattern: ResourcePattern
  readonly methods: ReadonlySet<string> | undefined
}

/**
 * What is likely not meant in a configuration without problems: routes, rules and upstreams that have no effect on each
 * other. Depends on the rules, which change by themselves: call it again then.
 */
export function gatewayWarnings(config: GatewayConfig, ruleSet: RuleSet): readonly GatewayWarning[] {
  const { routes = [], upstreams = {} } = config
  const limited = routes
    .filter(({ limits }) => limits !== 'off')
    .map((route) => ({ route, scope: scopeOfRoute(route) }))
  const rules = allRules(ruleSet).flatMap((rule) => {
    const scope = scopeOf(rule.resource, rule.methods)
    return scope === undefined || rule.enabled === false ? [] : [{ rule, scope }]
  })
  const counted = [...limited, ...limited.flatMap(({ route }) => messageScopes(route))]
  const used = new Set(routes.map(({ upstream }) => upstream))
  return [
    ...limited.flatMap(({ route, scope }) =>
      scope === undefined || rules.some((one) => overlap(one.scope, scope)) ? [] : [unlimited(route)],
    ),
    ...rules.flatMap(({ rule, scope }) =>
      counted.some((one) => one.scope !== undefined && overlap(one.scope, scope)) ? [] : [unrouted(rule)],
    ),
    ...Object.keys(upstreams).flatMap((name) => (used.has(name) ? [] : [unused(name)])),
    ...routes.flatMap((route) => {
      const { mode = DEFAULTS.concurrencyMode } = upstreams[route.upstream]?.concurrency ?? {}
      return route.priority === undefined || mode !== 'off' ? [] : [unprioritized(route)]
    }),
  ]
}

function allRules({ rules, tiers = [], exemptions = [] }: RuleSet): readonly PolicyRule[] {
  return [...rules, ...[...tiers, ...exemptions].flatMap((part) => part.rules ?? [])]
}

function scopeOfRoute({ match, resource }: RouteConfig): Scope | undefined {
  return scopeOf(resource ?? match.path ?? '*', match.methods)
}

/** What the messages of WebSockets count under. */
function messageScopes({ webSocket = {} }: RouteConfig): readonly { readonly scope: Scope | undefined }[] {
  const { messageResource, byteResource } = webSocket
  return [messageResource, byteResource].map((resource) => ({
    scope: resource === undefined ? undefined : scopeOf(resource, undefined),
  }))
}

function scopeOf(resource: string, methods: readonly string[] | undefined): Scope | undefined {
  const pattern = parsePattern(resource)
  if ('problem' in pattern) return undefined
  return { pattern, methods: methods && new Set(methods.map((method) => method.toUpperCase())) }
}

/** Whether a request can be in both. */
function overlap(one: Scope, other: Scope): boolean {
  const methods = one.methods === undefined || other.methods === undefined || haveCommon(one.methods, other.methods)
  return methods && patternsOverlap(one.pattern, other.pattern)
}

function haveCommon(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return [...one].some((method) => other.has(method))
}

function patternsOverlap(one: ResourcePattern, other: ResourcePattern): boolean {
  if (one.kind === 'all' || other.kind === 'all') return true
  if (one.kind !== other.kind) return false
  const [shorter, longer] = one.segments.length <= other.segments.length ? [one, other] : [other, one]
  const isSame = shorter.segments.every((segment, index) => {
    const given = longer.segments[index]
    return segment === undefined || given === undefined || segment === given
  })
  return isSame && (shorter.hasRest || shorter.segments.length === longer.segments.length)
}

function unlimited({ name, resource }: RouteConfig): GatewayWarning {
  const what = resource === undefined ? 'its requests' : `the resource "${resource}", under which its requests count`
  const message = `The route "${name}" is not limited: no rule is for ${what}. Add a rule, or write "limits: off".`
  return { code: 'route-unlimited', subject: name, message }
}

function unrouted(rule: PolicyRule): GatewayWarning {
  const subject = ruleName(rule)
  const message =
    `The rule "${subject}" is for "${rule.resource}", and no limited route leads there. Correct its resource, unless ` +
    'it is for checks that do not come through the gateway.'
  return { code: 'rule-unrouted', subject, message }
}

function unprioritized({ name, upstream }: RouteConfig): GatewayWarning {
  const message =
    `The priority of the route "${name}" has no effect: the upstream "${upstream}" turns nobody away. Add ` +
    '"concurrency" to it, or remove the priority.'
  return { code: 'priority-unused', subject: name, message }
}

function unused(name: string): GatewayWarning {
  const message = `The upstream "${name}" gets no requests: no route names it. Add a route, or remove it.`
  return { code: 'upstream-unused', subject: name, message }
}
