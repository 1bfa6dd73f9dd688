import type { EntityKey } from '@sluice/config-store'
import type { Membership } from '@sluice/core'
import type { OperationHandlers } from '../handler.ts'
import type { AdminParts } from './admin-context.ts'
import type { EntryKind } from './entries.ts'
import { listEntries, putEntries, putEntry, removeEntry } from './entries.ts'
import { textOf } from './query.ts'

const MEMBERS: EntryKind<Membership, EntityKey> = { table: ({ members }) => members, noun: 'membership' }

/** Which caller belongs to which tier. */
export function memberHandlers(parts: AdminParts): OperationHandlers {
  return {
    'GET /admin/members': (request) =>
      listEntries<Membership>(request, (filter) => parts.access.reads.members.list(filter)),

    'PUT /admin/members': (request) => putEntry(parts, request, { ...MEMBERS, entry: request.body as Membership }),

    'DELETE /admin/members': (request) => {
      const { query } = request
      const key = { dimension: textOf(query, 'dimension'), entity: textOf(query, 'entity') }
      return removeEntry(parts, request, { ...MEMBERS, key })
    },

    'POST /admin/members/bulk': (request) => putEntries(parts, request, { ...MEMBERS, field: 'members' }),
  }
}
