import type { MisuseListener } from './misuse-warning.ts'

/** Limiters that are created, used once and discarded in a row before this counts as misuse. */
const MOST_THROWN_AWAY = 10

/** Maximum number of names remembered with their rules. */
const MOST_NAMES = 1000

/** A limit that a request passed. */
export interface PassedLimit {
  readonly name: string
  /** Whether `name` is the name of the counters. False if only the decider knows it, such as a custom function. */
  readonly isNamed: boolean
  /** The object that keeps the counters. */
  readonly counters: object
}

/** Where limiters count: a store in this process, or a string shared by all external stores that may be the same. */
export type CounterSpace = object | string

/**
 * State shared by the limiters of a process, including the warnings already given. Holds no strong reference to
 * requests, stores or listeners.
 */
export class MisuseRegistry {
  readonly #told = new WeakMap<MisuseListener, Set<string>>()
  readonly #rules = new Map<string, string>()
  readonly #takenHere = new WeakMap<object, Map<string, number>>()
  readonly #takenElsewhere = new Map<string, Map<string, number>>()
  readonly #passed = new WeakMap<object, PassedLimit[]>()
  #usedAtOnce = 0
  #isKept = false

  /** Whether `listener` has not yet been notified of `matter`. */
  isNews(listener: MisuseListener, matter: string): boolean {
    const told = this.#told.get(listener)
    if (told === undefined) this.#told.set(listener, new Set([matter]))
    else if (told.has(matter)) return false
    else told.add(matter)
    return true
  }

  /** Records the rule of a name in an external space. False if the name already has another rule. */
  nameRule(space: string, name: string, rule: string): boolean {
    const place = `${space} ${name}`
    const known = this.#rules.get(place)
    if (known === undefined && this.#rules.size < MOST_NAMES) this.#rules.set(place, rule)
    return known === undefined || known === rule
  }

  /** Records that a limiter uses a name exclusively. False if another limiter already does. */
  take(space: CounterSpace, name: string): boolean {
    const taken = this.#takenIn(space)
    const holders = taken.get(name) ?? 0
    taken.set(name, holders + 1)
    return holders === 0
  }

  /** Releases a name. */
  leave(space: CounterSpace, name: string): void {
    const taken = this.#takenIn(space)
    const holders = taken.get(name) ?? 0
    if (holders > 1) taken.set(name, holders - 1)
    else taken.delete(name)
  }

  /** Records that a request passes a limit. Returns the earlier limit with the same counters or name, if any. */
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

  /** Records that a limiter was used in the tick of its creation. True if too many were, and none was reused. */
  usedAtOnce(): boolean {
    this.#usedAtOnce++
    return !this.#isKept && this.#usedAtOnce >= MOST_THROWN_AWAY
  }

  /** Records that such a limiter was reused. */
  usedAgain(): void {
    this.#isKept = true
  }

  /** Names used in a space, with their number of users. */
  #takenIn(space: CounterSpace): Map<string, number> {
    const known = typeof space === 'string' ? this.#takenElsewhere.get(space) : this.#takenHere.get(space)
    if (known !== undefined) return known
    const taken = new Map<string, number>()
    if (typeof space === 'string') this.#takenElsewhere.set(space, taken)
    else this.#takenHere.set(space, taken)
    return taken
  }
}

/** The registry of this process. */
export const processRegistry: MisuseRegistry = new MisuseRegistry()
