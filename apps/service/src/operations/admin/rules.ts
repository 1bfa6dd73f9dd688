import type { VersionContent } from '@sluice/config-store'
import type { NamedInPath, RateLimits, RateLimitsRequest } from '@sluice/contract'
import { ruleName } from '@sluice/core/internal'
import type { DenyEntry, Exemption, PolicyRule, RuleSet, Tier } from '@sluice/core/policy'
import type { Answer, OperationHandlers, OperationRequest } from '../handler.ts'
import { pageOfList, pageRequestOf } from '../paging.ts'
import type { PlaceOf } from '../problems.ts'
import { invalidRequest, notFound, placingProblems } from '../problems.ts'
import type { Expected } from './admin-requests.ts'
import {
  adminAnswer,
  expectedOf,
  pageAnswer,
  rejectEnded,
  rejectUnexpected,
  removedAnswer,
  textOf,
  underPrecondition,
} from './admin-requests.ts'
import type { AdminContext, ConfigAccess } from './config-access.ts'

/** The rules, resource by resource. */
export function rateLimitHandlers(parts: AdminContext): OperationHandlers {
  const { access } = parts
  return {
    'GET /admin/ratelimits': async ({ query }) => {
      const page = pageRequestOf(query)
      const resource = query.get('resource')
      const { number, ruleSet } = await enforcedRules(access)
      const all = byResource(ruleSet)
      const asked = resource === null ? all : all.filter((limits) => isSame(limits.resource, resource))
      return pageAnswer(
        pageOfList(asked, (limits) => limits.resource, page),
        { version: number },
      )
    },

    'PUT /admin/ratelimits': (request) => putRules(parts, request),

    'DELETE /admin/ratelimits': async (request) => {
      const resource = textOf(request.query, 'resource')
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

/** Puts rules in the place of all those of the resource. */
async function putRules({ access }: AdminContext, request: OperationRequest): Promise<Answer> {
  const { resource, rules } = request.body as RateLimitsRequest
  let others: readonly PolicyRule[] = []
  let replaced: readonly PolicyRule[] = []
  const version = await editRules(access, request, {
    change: (ruleSet, expected) => {
      others = othersThan(resource, ruleSet)
      replaced = ruleSet.rules.filter((rule) => isSame(rule.resource, resource))
      rejectUnexpected(expected, replaced.length > 0)
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

/** The name that a rule for this resource gets is the same for all spellings of it, and for no other. */
function nameOf(resource: string): string {
  return ruleName({ resource, dimension: 'global' })
}

/** The rules by resource, in the order of the alphabet. */
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

/** The rules that are not for this resource. */
function othersThan(resource: string, { rules }: RuleSet): readonly PolicyRule[] {
  return rules.filter((rule) => !isSame(rule.resource, resource))
}

/** The rule set that is enforced. */
export interface EnforcedRules {
  /** 0 when none is. */
  readonly number: number
  readonly ruleSet: RuleSet
}

const NO_RULES: EnforcedRules = { number: 0, ruleSet: { rules: [] } }

/** Reads the rule set that is enforced. */
export async function enforcedRules(access: ConfigAccess): Promise<EnforcedRules> {
  const { versions } = access.reads
  const { enforced } = await versions.current()
  if (enforced === undefined) return NO_RULES
  const content: VersionContent | undefined = await versions.get(enforced.number)
  return content ?? NO_RULES
}

/** A change of the rule set. */
export interface RuleSetEdit {
  /** The rule set with the change. May be called again; may throw a `ProblemError`. `expected`: what is changed, as the request says. */
  readonly change: (ruleSet: RuleSet, expected: Expected | undefined) => RuleSet
  /** By the place in the changed rule set. */
  readonly placeOf: PlaceOf
}

/**
 * Makes a version out of the enforced one and enforces it, in one step; resolves with its number. `If-Match` names the version
 * that the editor has seen.
 */
async function editRules(
  access: ConfigAccess,
  request: OperationRequest,
  { change, placeOf }: RuleSetEdit,
): Promise<number> {
  const expected = expectedOf(request)
  const ifVersion = typeof expected === 'number' ? expected : undefined
  const edit = (ruleSet: RuleSet): RuleSet => {
    const changed = change(ruleSet, expected)
    access.rejectUnfit(changed, placeOf)
    return changed
  }
  const { number } = await underPrecondition(request, () =>
    placingProblems(placeOf, () =>
      access.change(request, (config, author) => config.versions.edit(edit, author, ifVersion)),
    ),
  )
  return number
}

/** A named part of a rule set, and where it stands in it. */
export interface NamedPart {
  readonly path: '/admin/tiers' | '/admin/exemptions' | '/admin/deny-list'
  readonly field: 'tiers' | 'exemptions' | 'denyList'
  /** What one of them is called in a message. */
  readonly noun: string
}

type Named = Tier | Exemption | DenyEntry

/**
 * The handlers of one kind of named parts of the rule set. A change of one puts it where it stood, because of exemptions and
 * deny entries the first that matches counts; a new one comes last.
 */
export function ruleSetListHandlers(
  { access, context }: AdminContext,
  { path, field, noun }: NamedPart,
): OperationHandlers {
  return {
    [`GET ${path}`]: async ({ query }) => {
      const page = pageRequestOf(query)
      const { number, ruleSet } = await enforcedRules(access)
      return pageAnswer(
        pageOfList(entriesOf(ruleSet, field), ({ name }) => name, page),
        { version: number },
      )
    },

    [`PUT ${path}/{name}`]: async (request) => {
      const name = request.params['name'] ?? ''
      const entry = { name, ...(request.body as NamedInPath<Named>) } as Named
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
        change: (ruleSet, expected) => {
          const entries = entriesOf(ruleSet, field)
          const index = entries.findIndex((other) => other.name === name)
          rejectUnexpected(expected, index >= 0)
          replaced = entries[index]
          place = `/${field}/${index < 0 ? entries.length : index}`
          return { ...ruleSet, [field]: index < 0 ? [...entries, entry] : entries.with(index, entry) }
        },
        placeOf: (found) => (found === place || found.startsWith(`${place}/`) ? found.slice(place.length) : undefined),
      })
      return adminAnswer({ entry, version, replaced }, { revision: version })
    },

    [`DELETE ${path}/{name}`]: async (request) => {
      const { name } = request.params
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

function entriesOf(ruleSet: RuleSet, field: NamedPart['field']): readonly Named[] {
  return ruleSet[field] ?? []
}
