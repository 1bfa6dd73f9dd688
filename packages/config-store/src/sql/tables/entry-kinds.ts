import { checkBlock, checkMembership, checkOverride, countedEntity, PatternSpellings } from '@sluice/core/internal'
import type { Block, Membership, Override, RuleSetProblem } from '@sluice/core/policy'
import type { EntityKey, OverrideKey } from '../../config-entries.ts'
import type { SqlTarget, SqlValue } from '../sql-driver.ts'
import { encodeKey } from '../text-encoding.ts'
import { auditName } from './audit-table.ts'

/** What distinguishes one kind of entries. */
export interface EntryKind<E, Key> {
  /** Its name in the change feed and the audit log. */
  readonly kind: 'override' | 'member' | 'block'
  readonly table: string
  /** Fields of an entry that form its key, in order. Also the columns of the primary key. */
  readonly keyParts: readonly (keyof Key & keyof E & string)[]
  /** Additional columns, computed from the entry. */
  readonly extras: readonly ExtraColumn<E>[]
  /** All problems of an entry. */
  readonly check: (value: unknown) => readonly RuleSetProblem[]
  /** The name of an entry in the audit log. */
  readonly nameOf: (key: Key) => string
}

/** An additional column to find entries by. */
export interface ExtraColumn<E> {
  readonly name: string
  readonly type: 'text' | 'bigint'
  readonly read: (entry: E) => SqlValue
}

export const OVERRIDES: EntryKind<Override, OverrideKey> = {
  kind: 'override',
  table: 'overrides',
  keyParts: ['dimension', 'entity', 'resource'],
  extras: [],
  check: checkOverride,
  nameOf: ({ dimension, entity, resource }) => `${dimension}:${auditName(entity)} ${auditName(resource)}`,
}

export const MEMBERS: EntryKind<Membership, EntityKey> = {
  kind: 'member',
  table: 'members',
  keyParts: ['dimension', 'entity'],
  extras: [{ name: 'tier', type: 'text', read: ({ tier }) => encodeKey(tier) }],
  check: checkMembership,
  nameOf: ({ dimension, entity }) => `${dimension}:${auditName(entity)}`,
}

export const BLOCKS: EntryKind<Block, EntityKey> = {
  kind: 'block',
  table: 'blocks',
  keyParts: ['dimension', 'entity'],
  extras: [
    { name: 'forgotten_at', type: 'bigint', read: (block) => Math.ceil(Math.max(block.until, block.forgottenAt)) },
  ],
  check: checkBlock,
  nameOf: ({ dimension, entity }) => `${dimension}:${auditName(entity)}`,
}

/** The table and columns of a kind. */
export function targetOf<E, Key>({ table, keyParts, extras }: EntryKind<E, Key>): SqlTarget {
  return {
    table,
    columns: [
      ...keyParts.map((name) => ({ name, type: 'text' as const })),
      { name: 'body', type: 'text' },
      { name: 'position', type: 'bigint' },
      { name: 'changed_at', type: 'bigint' },
      { name: 'changed_by', type: 'text' },
      ...extras.map(({ name, type }) => ({ name, type })),
    ],
    key: keyParts,
  }
}

/** The key of an entry of any kind, or the entry itself. */
export type EntryKey = EntityKey & { readonly resource?: string }

/**
 * Canonicalizes keys of entries as engines do, so that entries that are one to an engine are one row: resource and
 * dimension in canonical form, an address as its counted network. Not shared between threads.
 */
export class CanonicalKeys {
  /** Leading bits of an IPv6 address that identify a caller. */
  readonly ipv6PrefixLength: number
  readonly #patterns = new PatternSpellings()

  constructor(ipv6PrefixLength: number) {
    this.ipv6PrefixLength = ipv6PrefixLength
  }

  /** The key or entry with a canonical key. The same object if it already is canonical. */
  canonical<K extends EntryKey>(key: K): K {
    const counted = countedEntity(key, this.ipv6PrefixLength)
    if (counted.resource === undefined) return counted
    const resource = this.#patterns.canonical(counted.resource)
    return resource === counted.resource ? counted : { ...counted, resource }
  }
}
