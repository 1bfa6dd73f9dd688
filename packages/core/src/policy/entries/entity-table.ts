import { Fingerprint } from '../../fingerprint.ts'
import type { Random } from '../../system/random.ts'
import { EntityShard, NO_SLOT } from './entity-shard.ts'
import type { Place, ValueForm } from './interned-values.ts'
import { InternedValues } from './interned-values.ts'

/** The table is cut into parts that grow one by one: no change has to wait for all of a million entries to move. */
const SHARD_BITS = 8
const SHARD_SHIFT = 32 - SHARD_BITS

/** What an entity gets. */
interface EntityEntry<V> {
  readonly value: V
  /** Milliseconds since 1970; from then on it is as if it was not there. Default: never. */
  readonly expiresAt?: number | undefined
}

/**
 * Millions of entities, each with one of a few distinct values, in 20 to 60 bytes an entity: of an entity only a keyed
 * fingerprint of 96 bits is kept, so entities cannot be listed. A distinct value costs some hundred bytes more. Entities
 * stand in places, such as dimensions; a place that holds nothing is not there. For one thread.
 */
export class EntityTable<V> {
  readonly #fingerprint: Fingerprint
  readonly #form: ValueForm<V>
  #values: InternedValues<V>
  #shards: readonly EntityShard[]
  #size = 0
  /** What is put gets this mark. While a reload is under way, entries from before carry the other one. */
  #mark = 0
  #isReloading = false

  /** `random`: the secret of the fingerprints is drawn from it, when the first entity comes. */
  constructor(random: Random, form: ValueForm<V>) {
    this.#fingerprint = new Fingerprint(random)
    this.#form = form
    this.#values = new InternedValues(form)
    this.#shards = shardsOver(this.#values)
  }

  /** Entities held; expired ones that nobody has met since are among them. */
  get size(): number {
    return this.#size
  }

  /** Distinct values held. */
  get distinctValues(): number {
    return this.#values.size
  }

  /** Another number whenever a place has come or gone: a place that was looked up before is to be looked up again then. */
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

  /** From now on it is noted what is put. One that was begun before and not ended is begun anew. */
  beginReload(): void {
    if (this.#isReloading) for (const shard of this.#shards) shard.markAll(1 - this.#mark)
    else this.#mark = 1 - this.#mark
    this.#isReloading = true
  }

  /** Drops what was not put since the reload was begun. Nothing when none is under way. */
  endReload(nowMs: number): void {
    if (!this.#isReloading) return
    this.#isReloading = false
    this.#size = 0
    for (const shard of this.#shards) {
      shard.drop({ nowMs, mark: 1 - this.#mark })
      this.#size += shard.size
    }
  }

  /** Drops all, and ends a reload that is under way. */
  clear(): void {
    const version = this.#values.placesVersion
    this.#values = new InternedValues(this.#form)
    this.#values.placesVersion = version + 1
    this.#shards = shardsOver(this.#values)
    this.#size = 0
    this.#isReloading = false
  }

  #remove(shard: EntityShard, slot: number): void {
    shard.remove(slot)
    this.#size--
  }
}

function shardsOver<V>(values: InternedValues<V>): readonly EntityShard[] {
  return Array.from({ length: 1 << SHARD_BITS }, () => new EntityShard(values))
}
