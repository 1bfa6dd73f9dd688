import type { CompiledRule } from './limits/compiled-rule.ts'
import { ErrorRateGuard } from './limits/error-rate.ts'
import type { ResourceEntry } from './matching/resource-table.ts'
import { ResourceTable } from './matching/resource-table.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import type { ErrorRateCut, RequestMatch } from './rule-set/rule-set.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * The calls that a guard counts: those of a resource and, for a rule of an exemption, only those that the exemption
 * matches.
 */
interface Watch {
  readonly guard: ErrorRateGuard
  /** Undefined if the resource of the rule is enough. */
  readonly within: ResourceTable<true> | undefined
}

/** The outcome of a call. */
export interface CallEnd {
  readonly failed: boolean
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

const NONE: readonly Watch[] = Object.freeze([])

/**
 * The guards of all active rules, including those of tiers, exemptions and candidates. Rules that count the same calls
 * in the same way share a guard, even across rule sets, and it keeps counting when one replaces another. A failure
 * concerns the resource, not the caller: a call counts for every rule of its resource, whether or not the rule applies
 * to its caller.
 */
export class ErrorRateGuards {
  /** By what they count, and how. */
  readonly #guards = new Map<string, ErrorRateGuard>()
  /** Guards of whole rule sets: every call counts. */
  readonly #ofSets: readonly ErrorRateGuard[]
  readonly #ofRules: ResourceTable<Watch>

  /** Sets the guard of every rule of the snapshots, and reuses those of `before`. */
  constructor(snapshots: readonly Snapshot[], before?: ErrorRateGuards) {
    const ofSets = new Set<ErrorRateGuard>()
    const watches = new Map<ErrorRateGuard, ResourceEntry<Watch>>()
    for (const snapshot of snapshots) {
      const matches = new Map((snapshot.ruleSet.exemptions ?? []).map(({ name, match }) => [name, match]))
      for (const compiled of snapshot.allRules) {
        const { rule, errorRate, origin } = compiled
        if (errorRate === undefined || rule.enabled === false) continue
        if (rule.errorRate === undefined) {
          compiled.guard = this.#guardOf([errorRate], before)
          ofSets.add(compiled.guard)
          continue
        }
        const scope = origin.part === 'exemption' ? scopeOf(matches.get(origin.name)) : undefined
        const guard = this.#guardOf([errorRate, rule.resource, rule.methods, scope], before)
        compiled.guard = guard
        if (!watches.has(guard)) watches.set(guard, entryOf(compiled, guard, scope))
      }
    }
    this.#ofSets = [...ofSets]
    this.#ofRules = new ResourceTable([...watches.values()])
  }

  /** Counts the outcome of a call in every guard that it matches. */
  report({ resource, method }: Pick<PolicyRequest, 'resource' | 'method'>, { failed, nowMs }: CallEnd): void {
    if (this.#guards.size === 0) return
    for (const guard of this.#ofSets) guard.report(failed, nowMs)
    const watches = this.#guards.size > this.#ofSets.length ? this.#ofRules.find(resource, method) : NONE
    for (const { guard, within } of watches) {
      // The same check as when exemptions are resolved.
      if (within === undefined || within.findCertain(resource, method).length > 0) guard.report(failed, nowMs)
    }
  }

  #guardOf(counted: readonly [ErrorRateCut, ...unknown[]], before: ErrorRateGuards | undefined): ErrorRateGuard {
    const place = JSON.stringify(counted)
    const known = this.#guards.get(place) ?? (before === undefined ? undefined : before.#guards.get(place))
    const guard = known ?? new ErrorRateGuard(counted[0])
    this.#guards.set(place, guard)
    return guard
  }
}

/** The resource of a match; undefined for any. */
function scopeOf(match: RequestMatch | undefined): Pick<RequestMatch, 'resource' | 'methods'> | undefined {
  if (match?.resource === undefined && match?.methods === undefined) return undefined
  const { resource = '*', methods } = match
  return { resource, ...(methods === undefined ? {} : { methods }) }
}

function entryOf(
  { rule }: CompiledRule,
  guard: ErrorRateGuard,
  scope: Pick<RequestMatch, 'resource' | 'methods'> | undefined,
): ResourceEntry<Watch> {
  const within =
    scope === undefined
      ? undefined
      : new ResourceTable([{ pattern: scope.resource ?? '*', methods: scope.methods, value: true as const }])
  return { pattern: rule.resource, methods: rule.methods, value: { guard, within } }
}
