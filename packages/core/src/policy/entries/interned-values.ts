import { nameSpace } from '../../fingerprint.ts'

/** How values of one kind are told apart and kept. */
export interface ValueForm<V> {
  /** The same text for equal values, another for others. */
  textOf(value: V): string
  /** What is kept of a value that is not there yet, such as a frozen copy. */
  keep(value: V): V
}

/** Where entities stand, such as a dimension: the first part of what they are looked up by. There while it holds something. */
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
 * The distinct values of a table, counted: millions of entities share a few of them, by number. Equal values are the same
 * object wherever they are held. What nobody holds any more is forgotten, and its number is given out again.
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
