import type { ConfigStore, EntityKey, EntryTable, OverrideKey, Page, Stored } from '@sluice/config-store'
import type { Override as SentOverride } from '@sluice/contract'
import { countedEntity as countedByEngine, DEFAULT_IPV6_PREFIX_LENGTH } from '@sluice/core/internal'
import type { Membership, Override } from '@sluice/core/policy'
import type { Answer, AnyRequest, OperationHandlers, OperationRequest } from '../handler.ts'
import { adminAnswer, pageAnswer, removedAnswer } from '../handler.ts'
import { invalidRequest, invalidRuleSet, notFound, placedError } from '../problems.ts'
import type { AdminContext } from './config-access.ts'
import { rejectEnded, seenBy, underPrecondition } from './config-access.ts'
import { enforcedRules } from './rules.ts'

/** The entries of one kind: their table, and their name in messages. */
export interface EntryKind<E, Key> {
  readonly table: (config: ConfigStore) => EntryTable<E, Key>
  readonly noun: string
}

/** An entry that may expire. */
interface Ending {
  readonly expiresAt?: number
}

/** Lists entries. */
export async function listEntries<E>(
  filter: OperationRequest<'listOverrides' | 'listMembers' | 'listBlocks'>['parameters'],
  list: (filter: Parameters<EntryTable<E, EntityKey>['list']>[0]) => Promise<Page<Stored<E>>>,
): Promise<Answer> {
  const { dimension, entity } = filter
  const meant = dimension !== undefined && entity !== undefined ? countedEntity({ dimension, entity }) : {}
  return pageAnswer(await list({ ...filter, ...meant }))
}

/** Puts one entry; `If-Match` has the revision that the editor has seen. */
async function putEntry<E extends Key & Ending, Key extends EntityKey>(
  { access, context }: AdminContext,
  request: AnyRequest,
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
  request: AnyRequest,
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

/** Puts many entries in one step: all of them, or none. `field`: their field in the body. */
async function putEntries<E extends Key & Ending, Key extends EntityKey>(
  { access, context }: AdminContext,
  request: AnyRequest,
  { table, field, given }: EntryKind<E, Key> & { readonly field: string; readonly given: readonly E[] },
): Promise<Answer> {
  rejectEnded(
    context.clock,
    given.map(({ expiresAt }, index) => ({ path: `/${field}/${index}/expiresAt`, at: expiresAt })),
  )
  const entries = given.map((entry) => countedEntity(entry))
  try {
    const { count } = await access.change(request, (config, author) => table(config).putAll(entries, author))
    return adminAnswer({ count })
  } catch (error) {
    throw placedError(error, (path) => `/${field}${path}`)
  }
}

/**
 * The entry or key with its caller in canonical spelling: an IPv6 address as its network, the names of a joint
 * dimension sorted. So there is one entry per caller, regardless of spelling.
 */
export function countedEntity<K extends EntityKey>(key: K): K {
  return countedByEngine(key, DEFAULT_IPV6_PREFIX_LENGTH)
}

const MEMBERS: EntryKind<Membership, EntityKey> = { table: ({ members }) => members, noun: 'membership' }

/** Membership of callers in tiers. */
export function memberHandlers(
  parts: AdminContext,
): OperationHandlers<'listMembers' | 'putMember' | 'deleteMember' | 'bulkMembers'> {
  return {
    listMembers: ({ parameters }) =>
      listEntries<Membership>(parameters, (filter) => parts.access.reads.members.list(filter)),

    putMember: async (request) => {
      await rejectUnknownTiers(parts, [request.body], () => '/tier')
      return await putEntry(parts, request, { ...MEMBERS, entry: request.body })
    },

    deleteMember: (request) => removeEntry(parts, request, { ...MEMBERS, key: request.parameters }),

    bulkMembers: async (request) => {
      const { members } = request.body
      await rejectUnknownTiers(parts, members, (index) => `/members/${index}/tier`)
      return await putEntries(parts, request, { ...MEMBERS, field: 'members', given: members })
    },
  }
}

/**
 * Rejects tiers that neither the enforced version nor the candidate declares: a misspelt tier would have no effect.
 * Without any declared tiers every name is accepted, so that members can be added before their tiers.
 */
async function rejectUnknownTiers(
  { access }: AdminContext,
  members: readonly Membership[],
  pathOf: (index: number) => string,
): Promise<void> {
  const { versions } = access.reads
  const { enforced, candidate } = await versions.current()
  const contents = await Promise.all([enforced, candidate].map((version) => version && versions.get(version.number)))
  const declared = new Set(contents.flatMap((content) => content?.ruleSet.tiers ?? []).map(({ name }) => name))
  if (declared.size === 0) return
  const expected = `a tier of the rules: ${[...declared].join(', ')}`
  const problems = members.flatMap(({ tier }, index) =>
    declared.has(tier) ? [] : [{ path: pathOf(index), received: JSON.stringify(tier), expected }],
  )
  if (problems.length > 0) throw invalidRequest(...problems)
}

const OVERRIDES: EntryKind<Override, OverrideKey> = { table: ({ overrides }) => overrides, noun: 'override' }

/** Overrides: other numbers for single callers. */
export function overrideHandlers(
  parts: AdminContext,
): OperationHandlers<'listOverrides' | 'putOverride' | 'deleteOverride' | 'bulkOverrides'> {
  return {
    listOverrides: ({ parameters }) =>
      listEntries<Override>(parameters, (filter) => parts.access.reads.overrides.list(filter)),

    putOverride: async (request) => {
      const entry = checkedOverride(request.body)
      await rejectUnfit(parts, [entry], (path) => path.replace('/0', ''))
      return await putEntry(parts, request, { ...OVERRIDES, entry })
    },

    deleteOverride: (request) => removeEntry(parts, request, { ...OVERRIDES, key: request.parameters }),

    bulkOverrides: async (request) => {
      const overrides = request.body.overrides.map(checkedOverride)
      await rejectUnfit(parts, overrides, (path) => `/overrides${path}`)
      return await putEntries(parts, request, { ...OVERRIDES, field: 'overrides', given: overrides })
    },
  }
}

/**
 * An override from a request. Its schema has checked that its windows are durations, which the type of the contract
 * does not express.
 */
function checkedOverride(override: SentOverride): Override {
  return override as Override
}

/**
 * Rejects overrides under which the state of a rule does not fit; `placeOf` maps a path in the list to one in the body.
 */
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
