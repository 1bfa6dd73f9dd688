import type { OverrideKey } from '@sluice/config-store'
import type { Override } from '@sluice/core'
import type { OperationHandlers } from '../http/operation-handler.ts'
import type { AdminParts } from './admin-parts.ts'
import type { EntryKind } from './entries.ts'
import { listEntries, putEntries, putEntry, removeEntry } from './entries.ts'
import { textOf } from './query.ts'

const OVERRIDES: EntryKind<Override, OverrideKey> = { table: ({ overrides }) => overrides, noun: 'override' }

/** Other numbers for single callers. */
export function overrideHandlers(parts: AdminParts): OperationHandlers {
  return {
    'GET /admin/overrides': (request) =>
      listEntries<Override>(request, (filter) => parts.access.reads.overrides.list(filter)),

    'PUT /admin/overrides': (request) => putEntry(parts, request, { ...OVERRIDES, entry: request.body as Override }),

    'DELETE /admin/overrides': (request) => {
      const { query } = request
      const key = {
        dimension: textOf(query, 'dimension'),
        entity: textOf(query, 'entity'),
        resource: textOf(query, 'resource'),
      }
      return removeEntry(parts, request, { ...OVERRIDES, key })
    },

    'POST /admin/overrides/bulk': (request) => putEntries(parts, request, { ...OVERRIDES, field: 'overrides' }),
  }
}
