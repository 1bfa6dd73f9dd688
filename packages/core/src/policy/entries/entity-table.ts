import { Fingerprint, nameSpace } from '../../fingerprint.ts'
import type { Random } from '../../system/random.ts'
import { EntityShard, NO_SLOT } from './entity-shard.ts'

/** The table has parts that grow one by one, so no change has to wait until a million entries are moved. */
const SHARD_BITS = 8
const SHARD_SHIFT = 32 - SHARD_BITS

/** How values of one kind are compared and stored. */
export interface ValueForm<V> {
  /** Equal for equal values, different for others. */
  textOf(value: V): string
  /** What is stored for a new value, such as a frozen copy. */
  keep(value: V): V
}

/** The value of an entity. */
interface EntityEntry<V> {
  readonly value: V
  /** Milliseconds since 1970; the entry has expired from then on. Default: never. */
  readonly expiresAt?: number | undefined
}

/**
 * Millions of entities, each with one of a few distinct values, in 20 to 60 bytes per entity: only a keyed 96-bit
 * fingerprint of an entity is stored, so entities cannot be listed. A distinct value takes some hundred bytes more.
 * Entities belong to places, such as dimensions; a place exists only while it has entities. For one thread.
 */
export class EntityTable<V> {
  readonly #fingerprint: Fingerprint
  readonly #values: InternedValues<V>
  readonly #shards: readonly EntityShard[]
  #size = 0
  /** Mark of new entries. During a reload, earlier entries have the other one. */
  #mark = 0
  #isReloading = false

  /** `random`: source of the fingerprint secret, drawn when the first entity is added. */
  constructor(random: Random, form: ValueForm<V>) {
    this.#fingerprint = new Fingerprint(random)
    this.#values = new InternedValues(form)
    this.#shards = Array.from({ length: 1 << SHARD_BITS }, () => new EntityShard(this.#values))
  }

  /** Number of entities, including expired ones that no lookup has found. */
  get size(): number {
    return this.#size
  }

  /** Number of distinct values. */
  get distinctValues(): number {
    return this.#values.size
  }

  /** Changes whenever a place is added or removed: then a place must be looked up again. */
  get placesVersion(): number {
    return this.#values.placesVersion
  }

  /** The place with that name, if it has entities. */
  placeOf(name: string): Place<V> | undefined {
    return this.#values.placeOf(name)
  }

  /** The value of an entity in a place, always the same object for equal values. Expired entries are dropped. */
  find(place: Place<V>, entity: string, nowMs: number): V | undefined {
    const fingerprint = this.#fingerprint
    fingerprint.of(place.space0, place.space1, entity)
    const shard = this.#shards[fingerprint.word1 >>> SHARD_SHIFT]!
    const slot = shard.find(fingerprint)
    if (slot === NO_SLOT) return undefined
    if (!shard.isExpired(slot, nowMs)) return this.#values.valueOf(shard.heldAt(slot))
    this.#remove(shard, slot)
    return undefined
  }

  /** Sets the value of an entity in a place. An entry that has already expired is removed. */
  put(who: { readonly place: string; readonly entity: string }, entry: EntityEntry<V>, nowMs: number): void {
    const { value, expiresAt = Number.POSITIVE_INFINITY } = entry
    if (!(expiresAt > nowMs)) {
      this.remove(who.place, who.entity)
      return
    }
    // Acquired before the previous value is released, which may be the same.
    const { number: held, place } = this.#values.take(who.place, value)
    this.#fingerprint.of(place.space0, place.space1, who.entity)
    const shard = this.#shards[this.#fingerprint.word1 >>> SHARD_SHIFT]!
    const before = shard.size
    shard.put(this.#fingerprint, { held, mark: this.#mark, expiresAt }, nowMs)
    this.#size += shard.size - before
  }

  /** Removes an entity from a place; false if it did not exist. */
  remove(name: string, entity: string): boolean {
    const place = this.#values.placeOf(name)
    if (place === undefined) return false
    this.#fingerprint.of(place.space0, place.space1, entity)
    const shard = this.#shards[this.#fingerprint.word1 >>> SHARD_SHIFT]!
    const slot = shard.find(this.#fingerprint)
    if (slot === NO_SLOT) return false
    this.#remove(shard, slot)
    return true
  }

  /** Begins a reload: entries set from now on are recorded. Restarts one that has not ended. */
  beginReload(): void {
    if (this.#isReloading) for (const shard of this.#shards) shard.markAll(1 - this.#mark)
    else this.#mark = 1 - this.#mark
    this.#isReloading = true
  }

  /** Ends a reload: drops entries that were not set since it began. Does nothing without a reload. */
  endReload(nowMs: number): void {
    if (!this.#isReloading) return
    this.#isReloading = false
    this.#size = 0
    for (const shard of this.#shards) {
      shard.drop({ nowMs, mark: 1 - this.#mark })
      this.#size += shard.size
    }
  }

  #remove(shard: EntityShard, slot: number): void {
    shard.remove(slot)
    this.#size--
  }
}

/** A place, such as a dimension: the first part of a lookup. Exists only while it has entities. */
export class Place<V> {
  readonly name: string
  /** Its name space for fingerprints, two int32. */
  readonly space0: number
  readonly space1: number
  /** Its values, by their text. */
  readonly held: Map<string, Held<V>> = new Map()

  constructor(name: string) {
    this.name = name
    const { space0, space1 } = nameSpace(name)
    this.space0 = space0
    this.space1 = space1
  }
}

/** A value in a place, and the number of entities that share it. */
class Held<V> {
  readonly place: Place<V>
  readonly value: V
  readonly text: string
  readonly number: number
  count = 0

  constructor(place: Place<V>, value: V, { text, number }: { text: string; number: number }) {
    this.place = place
    this.value = value
    this.text = text
    this.number = number
  }
}

interface Shared<V> {
  readonly value: V
  /** Places that have it. */
  places: number
}

/**
 * The distinct values of a table, with reference counts: millions of entities share a few of them, by number. Equal
 * values are the same object. A value without references is dropped, and its number is reused.
 */
export class InternedValues<V> {
  readonly #form: ValueForm<V>
  readonly #places = new Map<string, Place<V>>()
  readonly #values = new Map<string, Shared<V>>()
  readonly #held: (Held<V> | undefined)[] = [undefined]
  /** The values by number, for reading. */
  readonly #valueOf: (V | undefined)[] = [undefined]
  readonly #free: number[] = []
  /** Changes whenever a place is added or removed. */
  placesVersion = 0

  constructor(form: ValueForm<V>) {
    this.#form = form
  }

  /** Number of distinct values. */
  get size(): number {
    return this.#values.size
  }

  /** The place with that name, if it has values. */
  placeOf(name: string): Place<V> | undefined {
    return this.#places.get(name)
  }

  /** The value of a number that was acquired and not released. */
  valueOf(number: number): V {
    return this.#valueOf[number]!
  }

  /** Adds a reference to a value in a place. Release its number with {@link release}. */
  take(name: string, value: V): Held<V> {
    let place = this.#places.get(name)
    if (place === undefined) {
      place = new Place(name)
      this.#places.set(name, place)
      this.placesVersion++
    }
    const text = this.#form.textOf(value)
    let held = place.held.get(text)
    if (held === undefined) {
      held = new Held(place, this.#share(text, value), { text, number: this.#free.pop() ?? this.#held.length })
      this.#held[held.number] = held
      this.#valueOf[held.number] = held.value
      place.held.set(text, held)
    }
    held.count++
    return held
  }

  /** Removes a reference to a value. */
  release(number: number): void {
    const held = this.#held[number]!
    held.count--
    if (held.count > 0) return
    const { place, text } = held
    this.#held[number] = undefined
    this.#valueOf[number] = undefined
    this.#free.push(number)
    this.#unshare(text)
    place.held.delete(text)
    if (place.held.size > 0) return
    this.#places.delete(place.name)
    this.placesVersion++
  }

  #share(text: string, value: V): V {
    let shared = this.#values.get(text)
    if (shared === undefined) {
      shared = { value: this.#form.keep(value), places: 0 }
      this.#values.set(text, shared)
    }
    shared.places++
    return shared.value
  }

  #unshare(text: string): void {
    const shared = this.#values.get(text)!
    shared.places--
    if (shared.places === 0) this.#values.delete(text)
  }
}
