import type { MisuseListener } from './misuse-warning.ts'

/** So many limiters in a row must be used right where they are made, and never again, before that is a mistake. */
const MOST_THROWN_AWAY = 10

/** Names that are remembered with their rules; whoever makes up more of them does not share any. */
const MOST_NAMES = 1000

/** A limit that a request has passed. */
export interface PassedLimit {
  readonly name: string
  /** Whether it is the name of its counters; false where that is known only to what is asked, such as a function. */
  readonly isNamed: boolean
  /** What keeps its counters. */
  readonly counters: object
}

/** Where limiters count: a store in this process, or a text that is the same for all stores outside that may be one. */
export type CounterSpace = object | string

/**
 * What the limiters of a process know of each other, and what has been said already. Holds on to no request, store or
 * listener.
 */
export class MisuseRegistry {
  readonly #told = new WeakMap<MisuseListener, Set<string>>()
  readonly #rules = new Map<string, string>()
  readonly #takenHere = new WeakMap<object, Map<string, number>>()
  readonly #takenElsewhere = new Map<string, Map<string, number>>()
  readonly #passed = new WeakMap<object, PassedLimit[]>()
  #usedAtOnce = 0
  #isKept = false

  /** Whether this is the first time that `listener` is to hear of `matter`. */
  isNews(listener: MisuseListener, matter: string): boolean {
    const told = this.#told.get(listener)
    if (told === undefined) this.#told.set(listener, new Set([matter]))
    else if (told.has(matter)) return false
    else told.add(matter)
    return true
  }

  /** Notes which rule a name stands for in a space outside the process. False when it stands for another one already. */
  nameRule(space: string, name: string, rule: string): boolean {
    const place = `${space} ${name}`
    const known = this.#rules.get(place)
    if (known === undefined && this.#rules.size < MOST_NAMES) this.#rules.set(place, rule)
    return known === undefined || known === rule
  }

  /** Notes that a limiter counts under a name that it means to have for itself. False when another does already. */
  take(space: CounterSpace, name: string): boolean {
    const taken = this.#takenIn(space)
    const holders = taken.get(name) ?? 0
    taken.set(name, holders + 1)
    return holders === 0
  }

  /** Notes that such a limiter does so no more. */
  leave(space: CounterSpace, name: string): void {
    const taken = this.#takenIn(space)
    const holders = taken.get(name) ?? 0
    if (holders > 1) taken.set(name, holders - 1)
    else taken.delete(name)
  }

  /** Notes that a request passes a limit. The limit of those counters or that name that it passed before, if it did. */
  pass(request: object, limit: PassedLimit): PassedLimit | undefined {
    const passed = this.#passed.get(request)
    if (passed === undefined) {
      this.#passed.set(request, [limit])
      return undefined
    }
    const before = passed.find(
      ({ name, isNamed, counters }) =>
        name === limit.name && (counters === limit.counters || (isNamed && limit.isNamed)),
    )
    passed.push(limit)
    return before
  }

  /** Notes that a limiter was used in the breath in which it was made. True when too many were, and none was kept. */
  usedAtOnce(): boolean {
    this.#usedAtOnce++
    return !this.#isKept && this.#usedAtOnce >= MOST_THROWN_AWAY
  }

  /** Notes that such a limiter was used once more: those who make them keep them. */
  usedAgain(): void {
    this.#isKept = true
  }

  /** Which names are taken in a space, and by how many. */
  #takenIn(space: CounterSpace): Map<string, number> {
    const known = typeof space === 'string' ? this.#takenElsewhere.get(space) : this.#takenHere.get(space)
    if (known !== undefined) return known
    const taken = new Map<string, number>()
    if (typeof space === 'string') this.#takenElsewhere.set(space, taken)
    else this.#takenHere.set(space, taken)
    return taken
  }
}

/** That of this process. */
export const processRegistry: MisuseRegistry = new MisuseRegistry()
