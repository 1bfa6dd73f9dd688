import type { VersionContent } from '@sluice/config-store'
import type { RateLimits } from '@sluice/contract'
import { ruleName } from '@sluice/core/internal'
import type { DenyEntry, Exemption, PolicyRule, RuleSet, Tier } from '@sluice/core/policy'
import type { Answer, AnyRequest, OperationHandlers, OperationRequest } from '../handler.ts'
import { adminAnswer, pageAnswer, removedAnswer } from '../handler.ts'
import { pageOfList } from '../paging.ts'
import type { PlaceOf } from '../problems.ts'
import { invalidRequest, notFound, placedError } from '../problems.ts'
import type { AdminContext, ConfigAccess } from './config-access.ts'
import { rejectEnded, rejectUnexpected, underPrecondition } from './config-access.ts'

/** The rules, by resource. */
export function rateLimitHandlers(
  parts: AdminContext,
): OperationHandlers<'listRateLimits' | 'putRateLimits' | 'deleteRateLimits'> {
  const { access } = parts
  return {
    listRateLimits: async ({ parameters }) => {
      const { resource } = parameters
      const { number, ruleSet } = await enforcedRules(access)
      const all = byResource(ruleSet)
      const asked = resource === undefined ? all : all.filter((limits) => isSame(limits.resource, resource))
      return pageAnswer(
        pageOfList(asked, (limits) => limits.resource, parameters),
        { version: number },
      )
    },

    putRateLimits: (request) => putRules(parts, request),

    deleteRateLimits: async (request) => {
      const { resource } = request.parameters
      const version = await editRules(access, request, {
        change: (ruleSet) => {
          const rules = othersThan(resource, ruleSet)
          if (rules.length === ruleSet.rules.length) throw notFound('rule for this resource')
          return { ...ruleSet, rules }
        },
        placeOf: (path) => path,
      })
      return removedAnswer({ revision: version })
    },
  }
}

/** Replaces all rules of the resource. */
async function putRules({ access }: AdminContext, request: OperationRequest<'putRateLimits'>): Promise<Answer> {
  const { resource, rules } = request.body
  let others: readonly PolicyRule[] = []
  let replaced: readonly PolicyRule[] = []
  const version = await editRules(access, request, {
    change: (ruleSet) => {
      others = othersThan(resource, ruleSet)
      replaced = ruleSet.rules.filter((rule) => isSame(rule.resource, resource))
      rejectUnexpected(request, replaced.length > 0)
      const own = rules.map((rule) => ({ resource, ...rule }) as PolicyRule)
      return { ...ruleSet, rules: [...others, ...own] }
    },
    placeOf: (path) => {
      const [, place = '', rest = ''] = /^\/rules\/(\d+)(\/.*)?$/.exec(path) ?? []
      const index = Number(place) - others.length
      if (place === '' || index < 0) return undefined
      return rest === '/resource' ? rest : `/rules/${index}${rest}`
    },
  })
  const before = replaced.map(({ resource: _resource, ...rule }) => rule)
  return adminAnswer(
    { resource, rules, version, ...(before.length > 0 && { replaced: before }) },
    { revision: version },
  )
}

/** Whether two patterns match the same: `/orders/:id` and `/orders/:order` do. */
function isSame(one: string, other: string): boolean {
  return one === other || nameOf(one) === nameOf(other)
}

/** The generated rule name for this resource: the same for all its spellings, and for no other resource. */
function nameOf(resource: string): string {
  return ruleName({ resource, dimension: 'global' })
}

/** The rules by resource, in alphabetical order. */
function byResource({ rules }: RuleSet): readonly RateLimits[] {
  const found = new Map<string, { resource: string; rules: RateLimits['rules'][number][] }>()
  for (const { resource, ...rule } of rules) {
    const name = nameOf(resource)
    const limits = found.get(name) ?? { resource, rules: [] }
    limits.rules.push(rule)
    found.set(name, limits)
  }
  return [...found.values()].sort((one, other) => (one.resource < other.resource ? -1 : 1))
}

/** The rules of other resources. */
function othersThan(resource: string, { rules }: RuleSet): readonly PolicyRule[] {
  return rules.filter((rule) => !isSame(rule.resource, resource))
}

/** The enforced rule set. */
export interface EnforcedRules {
  /** 0 if there is none. */
  readonly number: number
  readonly ruleSet: RuleSet
}

const NO_RULES: EnforcedRules = { number: 0, ruleSet: { rules: [] } }

/** Reads the enforced rule set. */
export async function enforcedRules(access: ConfigAccess): Promise<EnforcedRules> {
  const { versions } = access.reads
  const { enforced } = await versions.current()
  if (enforced === undefined) return NO_RULES
  const content: VersionContent | undefined = await versions.get(enforced.number)
  return content ?? NO_RULES
}

/** A change of the rule set. */
export interface RuleSetEdit {
  /** Returns the changed rule set. May be called again; may throw a `ProblemError`. */
  readonly change: (ruleSet: RuleSet) => RuleSet
  /** Maps a path in the changed rule set. */
  readonly placeOf: PlaceOf
}

/**
 * Creates a version from the enforced one and enforces it, in one step; resolves with its number. `If-Match` names the
 * version that the editor has seen.
 */
async function editRules(access: ConfigAccess, request: AnyRequest, { change, placeOf }: RuleSetEdit): Promise<number> {
  const { precondition } = request
  const ifVersion = typeof precondition === 'number' ? precondition : undefined
  const edit = (ruleSet: RuleSet): RuleSet => {
    const changed = change(ruleSet)
    access.rejectUnfit(changed, placeOf)
    return changed
  }
  return await underPrecondition(request, async () => {
    try {
      const { number } = await access.change(request, (config, author) => config.versions.edit(edit, author, ifVersion))
      return number
    } catch (error) {
      throw placedError(error, placeOf)
    }
  })
}

/** The lists of named parts of the rule set. */
export function namedPartHandlers(parts: AdminContext): OperationHandlers<NamedPartOperation> {
  const tiers = namedParts(parts, 'tiers', 'tier')
  const exemptions = namedParts(parts, 'exemptions', 'exemption')
  const denyList = namedParts(parts, 'denyList', 'entry')
  return {
    listTiers: tiers.list,
    putTier: tiers.put,
    deleteTier: tiers.remove,
    listExemptions: exemptions.list,
    putExemption: exemptions.put,
    deleteExemption: exemptions.remove,
    listDenyEntries: denyList.list,
    putDenyEntry: denyList.put,
    deleteDenyEntry: denyList.remove,
  }
}

type ListOperation = 'listTiers' | 'listExemptions' | 'listDenyEntries'
type PutOperation = 'putTier' | 'putExemption' | 'putDenyEntry'
type RemoveOperation = 'deleteTier' | 'deleteExemption' | 'deleteDenyEntry'
type NamedPartOperation = ListOperation | PutOperation | RemoveOperation

type Named = Tier | Exemption | DenyEntry

/** Path of the named parts of one kind in a rule set. */
type NamedField = 'tiers' | 'exemptions' | 'denyList'

interface NamedPartHandlers {
  readonly list: (request: OperationRequest<ListOperation>) => Promise<Answer>
  readonly put: (request: OperationRequest<PutOperation>) => Promise<Answer>
  readonly remove: (request: OperationRequest<RemoveOperation>) => Promise<Answer>
}

/**
 * The handlers of one kind of named parts, called `noun` in messages. A changed part keeps its position, because the
 * first matching exemption or deny entry applies; a new one is appended.
 */
function namedParts({ access, context }: AdminContext, field: NamedField, noun: string): NamedPartHandlers {
  return {
    list: async ({ parameters }) => {
      const { number, ruleSet } = await enforcedRules(access)
      return pageAnswer(
        pageOfList(entriesOf(ruleSet, field), ({ name }) => name, parameters),
        { version: number },
      )
    },

    put: async (request) => {
      const { name } = request.parameters
      const entry = { name, ...request.body } as Named
      if (entry.name !== name) {
        throw invalidRequest({
          path: '/name',
          received: JSON.stringify(entry.name),
          expected: `the name in the path, ${JSON.stringify(name)}, or no name`,
        })
      }
      if ('expiresAt' in entry) rejectEnded(context.clock, [{ path: '/expiresAt', at: entry.expiresAt }])
      let place = ''
      let replaced: Named | undefined
      const version = await editRules(access, request, {
        change: (ruleSet) => {
          const entries = entriesOf(ruleSet, field)
          const index = entries.findIndex((other) => other.name === name)
          rejectUnexpected(request, index >= 0)
          replaced = entries[index]
          place = `/${field}/${index < 0 ? entries.length : index}`
          return { ...ruleSet, [field]: index < 0 ? [...entries, entry] : entries.with(index, entry) }
        },
        placeOf: (found) => (found === place || found.startsWith(`${place}/`) ? found.slice(place.length) : undefined),
      })
      return adminAnswer({ entry, version, replaced }, { revision: version })
    },

    remove: async (request) => {
      const { name } = request.parameters
      const version = await editRules(access, request, {
        change: (ruleSet) => {
          const entries = entriesOf(ruleSet, field)
          const rest = entries.filter((other) => other.name !== name)
          if (rest.length === entries.length) throw notFound(`${noun} of this name`)
          return { ...ruleSet, [field]: rest }
        },
        placeOf: (found) => found,
      })
      return removedAnswer({ revision: version })
    },
  }
}

function entriesOf(ruleSet: RuleSet, field: NamedField): readonly Named[] {
  return ruleSet[field] ?? []
}
