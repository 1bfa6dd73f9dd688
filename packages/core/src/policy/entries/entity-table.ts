import { Fingerprint, nameSpace } from '../../fingerprint.ts'
import type { Random } from '../../system/random.ts'
import { EntityShard, NO_SLOT } from './entity-shard.ts'

/** The table is cut into parts that grow one by one: no change has to wait for all of a million entries to move. */
const SHARD_BITS = 8
const SHARD_SHIFT = 32 - SHARD_BITS

/** How values of one kind are compared and stored. */
export interface ValueForm<V> {
  /** The same text for equal values, another for others. */
  textOf(value: V): string
  /** What is kept of a value that is not there yet, such as a frozen copy. */
  keep(value: V): V
}

/** What an entity gets. */
interface EntityEntry<V> {
  readonly value: V
  /** Milliseconds since 1970; from then on it is as if it was not there. Default: never. */
  readonly expiresAt?: number | undefined
}

/**
 * Millions of entities, each with one of a few distinct values, in 20 to 60 bytes an entity: of an entity only a keyed
 * fingerprint of 96 bits is kept, so entities cannot be listed. A distinct value costs some hundred bytes more.
 * Entities stand in places, such as dimensions; a place that holds nothing is not there. For one thread.
 */
export class EntityTable<V> {
  readonly #fingerprint: Fingerprint
  readonly #values: InternedValues<V>
  readonly #shards: readonly EntityShard[]
  #size = 0
  /** What is put gets this mark. While a reload is in progress, entries from before carry the other one. */
  #mark = 0
  #isReloading = false

  /** `random`: the secret of the fingerprints is drawn from it, when the first entity comes. */
  constructor(random: Random, form: ValueForm<V>) {
    this.#fingerprint = new Fingerprint(random)
    this.#values = new InternedValues(form)
    this.#shards = Array.from({ length: 1 << SHARD_BITS }, () => new EntityShard(this.#values))
  }

  /** Entities held, including expired ones that no lookup has found. */
  get size(): number {
    return this.#size
  }

  /** Distinct values held. */
  get distinctValues(): number {
    return this.#values.size
  }

  /**
   * Another number whenever a place has come or gone: a place that was looked up before is to be looked up again then.
   */
  get placesVersion(): number {
    return this.#values.placesVersion
  }

  /** The place of that name, if any entity stands in it. */
  placeOf(name: string): Place<V> | undefined {
    return this.#values.placeOf(name)
  }

  /** What an entity has in a place, always the same object for equal values. What has expired is dropped. */
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

  /** Puts an entity in a place, or gives it another value there. An entry that has expired already is a removal. */
  put(who: { readonly place: string; readonly entity: string }, entry: EntityEntry<V>, nowMs: number): void {
    const { value, expiresAt = Number.POSITIVE_INFINITY } = entry
    if (!(expiresAt > nowMs)) {
      this.remove(who.place, who.entity)
      return
    }
    // Taken before the value it replaces is released, which may be the same.
    const { number: held, place } = this.#values.take(who.place, value)
    this.#fingerprint.of(place.space0, place.space1, who.entity)
    const shard = this.#shards[this.#fingerprint.word1 >>> SHARD_SHIFT]!
    const before = shard.size
    shard.put(this.#fingerprint, { held, mark: this.#mark, expiresAt }, nowMs)
    this.#size += shard.size - before
  }

  /** Removes an entity from a place; false when it was not there. */
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

  /** From now on it is noted what is put. One that was begun before and not ended is restarted. */
  beginReload(): void {
    if (this.#isReloading) for (const shard of this.#shards) shard.markAll(1 - this.#mark)
    else this.#mark = 1 - this.#mark
    this.#isReloading = true
  }

  /** Drops what was not put since the reload was begun. Nothing when none is in progress. */
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

/**
 * Where entities stand, such as a dimension: the first part of what they are looked up by. There while it holds
 * something.
 */
export class Place<V> {
  readonly name: string
  /** Its name space for fingerprints, two int32. */
  readonly space0: number
  readonly space1: number
  /** What is held in it, by the text of the value. */
  readonly held: Map<string, Held<V>> = new Map()

  constructor(name: string) {
    this.name = name
    const { space0, space1 } = nameSpace(name)
    this.space0 = space0
    this.space1 = space1
  }
}

/** A value in a place, and how many entities share it. */
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
  /** Places that hold it. */
  places: number
}

/**
 * The distinct values of a table, counted: millions of entities share a few of them, by number. Equal values are the
 * same object wherever they are held. What nothing holds any more is forgotten, and its number is used again.
 */
export class InternedValues<V> {
  readonly #form: ValueForm<V>
  readonly #places = new Map<string, Place<V>>()
  readonly #values = new Map<string, Shared<V>>()
  readonly #held: (Held<V> | undefined)[] = [undefined]
  /** The values of the same numbers, for those who only want these. */
  readonly #valueOf: (V | undefined)[] = [undefined]
  readonly #free: number[] = []
  /** Another number whenever a place has come or gone. */
  placesVersion = 0

  constructor(form: ValueForm<V>) {
    this.#form = form
  }

  /** Distinct values. */
  get size(): number {
    return this.#values.size
  }

  /** The place of that name, if anything is held in it. */
  placeOf(name: string): Place<V> | undefined {
    return this.#places.get(name)
  }

  /** The value held under a number that was taken and not released. */
  valueOf(number: number): V {
    return this.#valueOf[number]!
  }

  /** Holds a value in a place once more. Give its number back by {@link release}. */
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

  /** Holds what is under a number once less. */
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
