import type { Incident } from '@sluice/core'

/** Who changes something, as it will stand in the audit log. */
export interface Author {
  /** Such as the name of an API key: 1 to 200 characters. Several keys may have it. */
  readonly name: string
  /** The id of the API key, which no other has: 1 to 200 characters. Left out for what is not done with a key. */
  readonly keyId?: string
  /** Why, in the author's words. */
  readonly note?: string
}

/** A part of a longer list. */
export interface Page<T> {
  readonly items: readonly T[]
  /** Give it back as `after` for the next page; undefined when this is the last. */
  readonly next: string | undefined
}

/** Which page. */
export interface PageRequest {
  readonly after?: string
  /** Most items, 1 to 1000; 100 when left out. */
  readonly limit?: number
}

/** An entry as it is kept. */
export interface Stored<E> {
  readonly entry: E
  /** Above 0, another with every change: what an editor has seen. */
  readonly revision: number
  /** Milliseconds since 1970. */
  readonly changedAt: number
  readonly changedBy: string
}

/** An entry that was put. */
export interface PutEntry<E> extends Stored<E> {
  /** What was there before; not there when nothing was. */
  readonly replaced?: Stored<E>
}

/** What an editor has seen: a change is refused with `SLUICE_CONFLICT` when something else is there by now. */
export interface Seen {
  /** The revision seen; 0 says that nothing was there. Not looked at when left out. */
  readonly ifRevision?: number
}

/** Which entries to list. */
export interface EntryFilter extends PageRequest {
  readonly dimension?: string
  readonly entity?: string
}

/**
 * Entries of one kind, each found by the parts of it that make its `Key`. Keys that mean the same caller and resource to an engine
 * are one key, however they are spelled: `/orders/:id` and `/Orders/:order/`, `1.2.3.4` and `::ffff:1.2.3.4`, two addresses of
 * one IPv6 network. An entry is kept as it was last written. Every change is written with its audit record and its place in the
 * change feed, or not at all.
 */
export interface EntryTable<E, Key> {
  put(entry: E, author: Author, seen?: Seen): Promise<PutEntry<E>>
  /**
   * Puts many, all or none, in one step of the change feed and with one audit record each thousand; of several with one key the
   * last counts. Whoever else wants to write waits meanwhile, and is refused at its deadline: a million take 10 seconds or more.
   */
  putAll(entries: Iterable<E>, author: Author): Promise<{ readonly count: number }>
  get(key: Key): Promise<Stored<E> | undefined>
  /** Removes it; false when it was not there. */
  remove(key: Key, author: Author, seen?: Seen): Promise<boolean>
  /** In the order of their keys. */
  list(filter?: EntryFilter): Promise<Page<Stored<E>>>
}

/** Who is meant by an entry. */
export interface EntityKey {
  readonly dimension: string
  readonly entity: string
}

/** Which override is meant. */
export interface OverrideKey extends EntityKey {
  readonly resource: string
}

/** The one switch of an incident. */
export interface IncidentSwitch {
  get(): Promise<Stored<Incident>>
  set(incident: Incident, author: Author, seen?: Seen): Promise<Stored<Incident>>
}
