import type { RateLimits, RateLimitsRequest } from '@sluice/contract'
import type { PolicyRule, RuleSet } from '@sluice/core'
import { ruleName } from '@sluice/core/internal'
import type { Answer } from '../answer.ts'
import type { OperationHandlers, OperationRequest } from '../handler.ts'
import { pageOfList, pageRequestOf } from '../paging.ts'
import { notFound } from '../problems.ts'
import { adminAnswer, pageAnswer, removedAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-context.ts'
import { editRules, enforcedRules } from './edit-rules.ts'
import { refuseUnexpected } from './precondition.ts'
import { textOf } from './query.ts'

/** The rules, resource by resource. */
export function rateLimitHandlers(parts: AdminParts): OperationHandlers {
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
async function putRules({ access }: AdminParts, request: OperationRequest): Promise<Answer> {
  const { resource, rules } = request.body as RateLimitsRequest
  let others: readonly PolicyRule[] = []
  let replaced: readonly PolicyRule[] = []
  const version = await editRules(access, request, {
    change: (ruleSet, expected) => {
      others = othersThan(resource, ruleSet)
      replaced = ruleSet.rules.filter((rule) => isSame(rule.resource, resource))
      refuseUnexpected(expected, replaced.length > 0)
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
