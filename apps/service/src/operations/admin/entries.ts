import type { ConfigStore, EntityKey, EntryTable, OverrideKey, Page, Stored } from '@sluice/config-store'
import type { BulkOverridesRequest } from '@sluice/contract'
import { countedEntity as countedByEngine } from '@sluice/core/internal'
import type { Membership, Override } from '@sluice/core/policy'
import { IPV6_PREFIX_LENGTH } from '../../address-network.ts'
import type { Answer, OperationHandlers, OperationRequest } from '../handler.ts'
import { pageRequestOf } from '../paging.ts'
import { invalidRuleSet, notFound, placingProblems } from '../problems.ts'
import {
  adminAnswer,
  pageAnswer,
  rejectEnded,
  removedAnswer,
  seenBy,
  textOf,
  textsOf,
  underPrecondition,
} from './admin-requests.ts'
import type { AdminContext } from './config-access.ts'
import { enforcedRules } from './rules.ts'

/** The entries of one kind: their table, and what one of them is called in a message. */
export interface EntryKind<E, Key> {
  readonly table: (config: ConfigStore) => EntryTable<E, Key>
  readonly noun: string
}

/** An entry that may end by itself. */
interface Ending {
  readonly expiresAt?: number
}

/** Lists entries, by the parameters `dimension`, `entity`, `after` and `limit`. */
export async function listEntries<E>(
  { query }: OperationRequest,
  list: (filter: Parameters<EntryTable<E, EntityKey>['list']>[0]) => Promise<Page<Stored<E>>>,
): Promise<Answer> {
  const filter = textsOf(query, ['dimension', 'entity'])
  const { dimension, entity } = filter
  const meant = dimension !== undefined && entity !== undefined ? countedEntity({ dimension, entity }) : filter
  return pageAnswer(await list({ ...meant, ...pageRequestOf(query) }))
}

/** Puts one entry; `If-Match` has the revision that the editor has seen. */
async function putEntry<E extends Key & Ending, Key extends EntityKey>(
  { access, context }: AdminContext,
  request: OperationRequest,
  { table, entry }: EntryKind<E, Key> & { readonly entry: E },
): Promise<Answer> {
  rejectEnded(context.clock, [{ path: '/expiresAt', at: entry.expiresAt }])
  const meant = countedEntity(entry)
  const stored = await underPrecondition(request, () =>
    access.change(request, async (config, author) => {
      const entries = table(config)
      const seen = await seenBy(request, async () => (await entries.get(meant))?.revision)
      return await entries.put(meant, author, seen)
    }),
  )
  return adminAnswer(stored, { revision: stored.revision })
}

/** Removes one entry. */
async function removeEntry<E, Key extends EntityKey>(
  { access }: AdminContext,
  request: OperationRequest,
  { table, noun, key }: EntryKind<E, Key> & { readonly key: Key },
): Promise<Answer> {
  const meant = countedEntity(key)
  await underPrecondition(request, () =>
    access.change(request, async (config, author) => {
      const entries = table(config)
      const seen = await seenBy(request, async () => (await entries.get(meant))?.revision)
      if (!(await entries.remove(meant, author, seen))) throw notFound(`${noun} of this caller`)
    }),
  )
  return removedAnswer()
}

/** Puts many entries in one step: all of them, or none. They stand in the body under `field`. */
async function putEntries<E extends Key & Ending, Key extends EntityKey>(
  { access, context }: AdminContext,
  request: OperationRequest,
  { table, field }: EntryKind<E, Key> & { readonly field: 'overrides' | 'members' },
): Promise<Answer> {
  const { [field]: given } = request.body as Readonly<Record<typeof field, readonly E[]>>
  rejectEnded(
    context.clock,
    given.map(({ expiresAt }, index) => ({ path: `/${field}/${index}/expiresAt`, at: expiresAt })),
  )
  const entries = given.map((entry) => countedEntity(entry))
  const { count } = await placingProblems(
    (path) => `/${field}${path}`,
    () => access.change(request, (config, author) => table(config).putAll(entries, author)),
  )
  return adminAnswer({ count })
}

/**
 * The same entry or key with the caller written the way in which requests are counted: an IPv6 address as its network, the names
 * of a joint dimension in one order. So there is one entry for one caller, however it was spelled.
 */
export function countedEntity<K extends EntityKey>(key: K): K {
  return countedByEngine(key, IPV6_PREFIX_LENGTH)
}

const MEMBERS: EntryKind<Membership, EntityKey> = { table: ({ members }) => members, noun: 'membership' }

/** Which caller belongs to which tier. */
export function memberHandlers(parts: AdminContext): OperationHandlers {
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

const OVERRIDES: EntryKind<Override, OverrideKey> = { table: ({ overrides }) => overrides, noun: 'override' }

/** Other numbers for single callers. */
export function overrideHandlers(parts: AdminContext): OperationHandlers {
  return {
    'GET /admin/overrides': (request) =>
      listEntries<Override>(request, (filter) => parts.access.reads.overrides.list(filter)),

    'PUT /admin/overrides': async (request) => {
      const entry = request.body as Override
      await rejectUnfit(parts, [entry], (path) => path.replace('/0', ''))
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
      await rejectUnfit(parts, overrides as readonly Override[], (path) => `/overrides${path}`)
      return await putEntries(parts, request, { ...OVERRIDES, field: 'overrides' })
    },
  }
}

/** Refuses overrides under which the state of a rule does not fit; `placeOf` turns a place in the list into one in the body. */
async function rejectUnfit(
  { access }: AdminContext,
  overrides: readonly Override[],
  placeOf: (path: string) => string,
): Promise<void> {
  if (!access.fit.isBounded) return
  const { ruleSet } = await enforcedRules(access)
  const problems = access.fit.problemsOfOverrides(overrides, ruleSet)
  if (problems.length > 0) throw invalidRuleSet(problems.map((one) => ({ ...one, path: placeOf(one.path) })))
}
