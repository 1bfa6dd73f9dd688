import type { NamedInPath } from '@sluice/contract'
import type { DenyEntry, Exemption, RuleSet, Tier } from '@sluice/core'
import type { OperationHandlers } from '../handler.ts'
import { pageOfList, pageRequestOf } from '../paging.ts'
import { invalidRequest, notFound } from '../problems.ts'
import { adminAnswer, pageAnswer, removedAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-context.ts'
import { editRules, enforcedRules } from './edit-rules.ts'
import { refuseEnded } from './expiry.ts'
import { refuseUnexpected } from './precondition.ts'

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
export function namedPartHandlers(
  { access, context }: AdminParts,
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
      if ('expiresAt' in entry) refuseEnded(context.clock, [{ path: '/expiresAt', at: entry.expiresAt }])
      let place = ''
      let replaced: Named | undefined
      const version = await editRules(access, request, {
        change: (ruleSet, expected) => {
          const entries = entriesOf(ruleSet, field)
          const index = entries.findIndex((other) => other.name === name)
          refuseUnexpected(expected, index >= 0)
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
