import type { MisuseListener } from './misuse-warning.ts'

/** So many limiters in a row must be used right where they are made, and never again, before that is a mistake. */
const MOST_THROWN_AWAY = 10

/** Names that are remembered with their rules; whoever makes up more of them does not share any. */
const MOST_NAMES = 1000

/** A limit that a request has passed. */
export interface PassedLimit {
  readonly name: string
  /** What keeps its counters. */
  readonly counters: object
}

/**
 * What the limiters of a process know of each other, and what has been said already. Holds on to no request, store or
 * listener.
 */
export class MisuseRecord {
  readonly #told = new WeakMap<MisuseListener, Set<string>>()
  readonly #rules = new Map<string, string>()
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

  /** Notes which rule a name stands for on stores that are shared. False when it stands for another one already. */
  nameRule(name: string, rule: string): boolean {
    const known = this.#rules.get(name)
    if (known === undefined && this.#rules.size < MOST_NAMES) this.#rules.set(name, rule)
    return known === undefined || known === rule
  }

  /** Notes that a request passes a limit. The limit of that name that it passed before, if it did. */
  pass(request: object, limit: PassedLimit): PassedLimit | undefined {
    const passed = this.#passed.get(request)
    if (passed === undefined) {
      this.#passed.set(request, [limit])
      return undefined
    }
    const before = passed.find(({ name }) => name === limit.name)
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
}

/** That of this process. */
export const processRecord: MisuseRecord = new MisuseRecord()
