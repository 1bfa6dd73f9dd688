import type { OverrideKey } from '@sluice/config-store'
import type { BulkOverridesRequest } from '@sluice/contract'
import type { Override } from '@sluice/core'
import type { OperationHandlers } from '../handler.ts'
import { invalidRuleSet } from '../problems.ts'
import type { AdminParts } from './admin-context.ts'
import { enforcedRules } from './edit-rules.ts'
import type { EntryKind } from './entries.ts'
import { listEntries, putEntries, putEntry, removeEntry } from './entries.ts'
import { textOf } from './query.ts'

const OVERRIDES: EntryKind<Override, OverrideKey> = { table: ({ overrides }) => overrides, noun: 'override' }

/** Other numbers for single callers. */
export function overrideHandlers(parts: AdminParts): OperationHandlers {
  return {
    'GET /admin/overrides': (request) =>
      listEntries<Override>(request, (filter) => parts.access.reads.overrides.list(filter)),

    'PUT /admin/overrides': async (request) => {
      const entry = request.body as Override
      await refuseUnfit(parts, [entry], (path) => path.replace('/0', ''))
      return await putEntry(parts, request, { ...OVERRIDES, entry })
    },

    'DELETE /admin/overrides': (request) => {
      const { query } = request
      const key = {
        dimension: textOf(query, 'dimension'),
        entity: textOf(query, 'entity'),
        resource: textOf(query, 'resource'),
      }
      return removeEntry(parts, request, { ...OVERRIDES, key })
    },

    'POST /admin/overrides/bulk': async (request) => {
      const { overrides } = request.body as BulkOverridesRequest
      await refuseUnfit(parts, overrides as readonly Override[], (path) => `/overrides${path}`)
      return await putEntries(parts, request, { ...OVERRIDES, field: 'overrides' })
    },
  }
}

/** Refuses overrides under which the state of a rule does not fit; `placeOf` turns a place in the list into one in the body. */
async function refuseUnfit(
  { access }: AdminParts,
  overrides: readonly Override[],
  placeOf: (path: string) => string,
): Promise<void> {
  if (!access.fit.isBounded) return
  const { ruleSet } = await enforcedRules(access)
  const problems = access.fit.problemsOfOverrides(overrides, ruleSet)
  if (problems.length > 0) throw invalidRuleSet(problems.map((one) => ({ ...one, path: placeOf(one.path) })))
}
