import type { Incident } from '@sluice/core/policy'

/** Who makes a change, as recorded in the audit log. */
export interface Author {
  /** For example the name of an API key: 1 to 200 characters. Not unique. */
  readonly name: string
  /** Id of the API key: 1 to 200 characters, unique. Omit it for changes made without a key. */
  readonly keyId?: string
  /** The author's reason for the change. */
  readonly note?: string
}

/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[]
  /** Pass it as `after` to get the next page. Undefined on the last page. */
  readonly next: string | undefined
}

/** Selects a page of a list. */
export interface PageRequest {
  readonly after?: string
  /** Maximum number of items, 1 to 1000. Default: 100. */
  readonly limit?: number
}

/** An entry and its metadata. */
export interface Stored<E> {
  readonly entry: E
  /** Above 0. Every change assigns a new one; pass it as `ifRevision` to detect concurrent changes. */
  readonly revision: number
  /** Milliseconds since 1970. */
  readonly changedAt: number
  readonly changedBy: string
}

/** The result of `put`. */
export interface PutEntry<E> extends Stored<E> {
  /** The previous entry. Absent if there was none. */
  readonly replaced?: Stored<E>
}

/** Optimistic locking: a change fails with `SLUICE_CONFLICT` if the entry has another revision. */
export interface Seen {
  /** The revision that the editor read; 0 if there was no entry. Default: not checked. */
  readonly ifRevision?: number
}

/** Selects the entries to list. */
export interface EntryFilter extends PageRequest {
  readonly dimension?: string
  readonly entity?: string
}

/**
 * Entries of one kind, identified by the fields in `Key`. Keys that an engine treats as the same caller and resource
 * are the same key: `/orders/:id` and `/Orders/:order/`, `1.2.3.4` and `::ffff:1.2.3.4`, two addresses of one IPv6
 * network. The entry keeps the form in which it was last written. A change, its audit record and its position in the
 * change feed are written atomically.
 */
export interface EntryTable<E, Key> {
  put(entry: E, author: Author, seen?: Seen): Promise<PutEntry<E>>
  /**
   * Puts many entries atomically, in one step of the change feed and with one audit record per 1000 entries. If several
   * entries have the same key, the last one wins. Other writers wait and fail at their deadline: a million entries take
   * 10 seconds or more.
   */
  putAll(entries: Iterable<E>, author: Author): Promise<{ readonly count: number }>
  get(key: Key): Promise<Stored<E> | undefined>
  /** Removes the entry. Resolves with false if there was none. */
  remove(key: Key, author: Author, seen?: Seen): Promise<boolean>
  /** Sorted by key. */
  list(filter?: EntryFilter): Promise<Page<Stored<E>>>
}

/** Identifies the caller that an entry applies to. */
export interface EntityKey {
  readonly dimension: string
  readonly entity: string
}

/** Identifies an override. */
export interface OverrideKey extends EntityKey {
  readonly resource: string
}

/** Reads and sets incident mode. */
export interface IncidentSwitch {
  get(): Promise<Stored<Incident>>
  set(incident: Incident, author: Author, seen?: Seen): Promise<Stored<Incident>>
}
