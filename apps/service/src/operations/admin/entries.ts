import type { ConfigStore, EntityKey, EntryTable, Page, Stored } from '@sluice/config-store'
import type { Answer } from '../answer.ts'
import type { OperationRequest } from '../handler.ts'
import { pageRequestOf } from '../paging.ts'
import { notFound, placingProblems } from '../problems.ts'
import { adminAnswer, pageAnswer, removedAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-context.ts'
import { countedEntity } from './counted-entity.ts'
import { refuseEnded } from './expiry.ts'
import { seenBy, underPrecondition } from './precondition.ts'
import { textsOf } from './query.ts'

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
export async function putEntry<E extends Key & Ending, Key extends EntityKey>(
  { access, context }: AdminParts,
  request: OperationRequest,
  { table, entry }: EntryKind<E, Key> & { readonly entry: E },
): Promise<Answer> {
  refuseEnded(context.clock, [{ path: '/expiresAt', at: entry.expiresAt }])
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
export async function removeEntry<E, Key extends EntityKey>(
  { access }: AdminParts,
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
export async function putEntries<E extends Key & Ending, Key extends EntityKey>(
  { access, context }: AdminParts,
  request: OperationRequest,
  { table, field }: EntryKind<E, Key> & { readonly field: 'overrides' | 'members' },
): Promise<Answer> {
  const { [field]: given } = request.body as Readonly<Record<typeof field, readonly E[]>>
  refuseEnded(
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
