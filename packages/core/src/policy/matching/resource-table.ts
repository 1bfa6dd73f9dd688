import { SluiceError } from '../../errors.ts'
import { MatchCache } from './match-cache.ts'
import { plainReading, readPath } from './path.ts'
import type { Found, Matches, ReadingMatches } from './resource-matches.ts'
import { MatchLists } from './resource-matches.ts'
import type { ResourcePattern } from './resource-pattern.ts'
import { compareSpecificity, ownsSlash, parsePattern } from './resource-pattern.ts'
import type { EmptySegments } from './resource-tree.ts'
import { ResourceTree } from './resource-tree.ts'
import { canonicalMethods } from './rule-name.ts'

/** Something that holds for a resource. */
export interface ResourceEntry<T> {
  /** See `parsePattern`. */
  readonly pattern: string
  /** HTTP methods it is for, in any case; all when undefined. */
  readonly methods: readonly string[] | undefined
  readonly value: T
}

/** How many resources a table remembers the matches of, and the longest that it does, in UTF-16 code units. */
const MOST_REMEMBERED = 4096
const LONGEST_REMEMBERED = 256

// Kinds of requests by their method. Methods that no entry names are all the same; each that one names is a kind of its
// own.
const OTHER_METHOD = 0
const NO_METHOD = 1
const FIRST_NAMED = 2

// Ways to take empty segments. Usually a slash at the end makes no difference, and an empty segment is nothing that a
// parameter stands for.
const EMPTY_FILLS: EmptySegments = { keepsLast: false, fillsParameters: true }
const LAST_IS_BELOW: EmptySegments = { keepsLast: true, fillsParameters: false }
const LAST_FILLS: EmptySegments = { keepsLast: true, fillsParameters: true }

/**
 * Finds what holds for a resource. Immutable. The cost of finding does not grow with the number of entries, only with
 * the length of the path and the number of matches: the segments of a path are followed through a tree, and the matches
 * of recent resources are remembered.
 *
 * Methods are compared in any case. HEAD is also taken for GET, because servers answer it with what they do for GET.
 *
 * All lists are frozen, and the same matches are the same list, as long as it is remembered: a caller may keep what
 * follows from a list by its identity, weakly, because lists are forgotten and created again when there are very many.
 */
export class ResourceTable<T> {
  readonly #tree: ResourceTree<T>
  readonly #lists: MatchLists<T>
  /** Kinds of the methods that entries name. */
  readonly #kindByMethod = new Map<string, number>()
  /** Those that a request may be of that does not say its method. */
  readonly #anyKinds: readonly number[]
  readonly #recent: MatchCache<Found<T>>

  /** Throws `SLUICE_INVALID_RULE_SET` for what is no pattern. */
  constructor(entries: readonly ResourceEntry<T>[]) {
    const ranked = entries
      .map(({ pattern, methods, value }) => ({
        pattern: patternOf(pattern),
        ownsSlash: ownsSlash(pattern),
        methods: canonicalMethods(methods),
        value,
      }))
      .sort(compareSpecificity)
    for (const { methods } of ranked) this.#nameKinds(methods ?? [])
    this.#tree = new ResourceTree(ranked.map((entry) => ({ ...entry, kinds: this.#kindsOf(entry.methods) })))
    this.#lists = new MatchLists(ranked.map(({ value }) => value))
    this.#anyKinds = [OTHER_METHOD, ...this.#kindByMethod.values()]
    this.#recent = new MatchCache(FIRST_NAMED + this.#kindByMethod.size, MOST_REMEMBERED)
  }

  /**
   * Every value that holds for a resource in any of its readings (see `readPath`), the most specific first, none twice.
   * Without a method, those for some methods hold too: leaving the method out must not lead past a rule.
   */
  find(resource: string, method: string | undefined): readonly T[] {
    return this.#find(resource, method).matches.united
  }

  /**
   * The same for each reading on its own, for callers that take only the most specific of them: a reading that leads to
   * a rule with a high limit must not hide another that leads to a rule with a low one; nor may one method that a
   * request may have hide another, where it does not say which. At least one list; readings with the same matches have
   * one together.
   */
  findByReading(resource: string, method: string | undefined): readonly (readonly T[])[] {
    return this.#find(resource, method).matches.byReading
  }

  /** The same with room for a note of what follows from it. */
  findNoted(resource: string, method: string | undefined): Found<T> {
    return this.#find(resource, method)
  }

  /**
   * The values that hold in every reading; without a method, only those for all methods. For what lifts limits: no odd
   * spelling of something else must lead there.
   */
  findCertain(resource: string, method: string | undefined): readonly T[] {
    return this.#find(resource, method).matches.certain
  }

  #find(resource: string, method: string | undefined): Found<T> {
    const kind = this.#kindOf(method)
    if (resource.length > LONGEST_REMEMBERED) return this.#search(resource, kind)
    let found = this.#recent.get(kind, resource)
    if (found === undefined) {
      found = this.#search(resource, kind)
      this.#recent.add(kind, resource, found)
    }
    return found
  }

  #search(resource: string, kind: number): Found<T> {
    const plain = plainReading(resource)
    if (plain !== undefined && kind !== NO_METHOD) return this.#searchPlain(plain, kind)
    const each: Gathered<T> = { sure: new Set(), further: new Set() }
    const kinds = kind === NO_METHOD ? this.#anyKinds : [kind]
    for (const reading of readPath(resource)) for (const one of kinds) this.#gather(reading, one, each)
    return this.#lists.combine(each)
  }

  /** Searches for a reading that has no empty segments, but for a slash at its end. */
  #searchPlain(reading: string, kind: number): Found<T> {
    const tree = this.#tree
    const found = this.#searchReading(reading, kind)
    if (!(tree.hasParameterNext || tree.hasRestNext)) return found
    const each: Gathered<T> = { sure: new Set(), further: new Set() }
    this.#gather(reading, kind, each)
    return each.further.size === 0 ? found : this.#lists.combine(each)
  }

  /**
   * Adds what a reading leads to, in every way to take its empty segments. A slash at the end is taken for more than
   * nothing only where an entry asks for what stands after it: otherwise every path that ends in one would also be
   * something else.
   */
  #gather(reading: string, kind: number, { sure, further }: Gathered<T>): void {
    const tree = this.#tree
    sure.add(this.#searchReading(reading, kind).matches)
    const isBelow = tree.hasRestNext
    const hasEmpty = reading.includes('//')
    if (hasEmpty) further.add(this.#searchReading(reading, kind, EMPTY_FILLS).matches)
    const fills = tree.hasParameterNext || (hasEmpty && tree.hasRestNext)
    if (isBelow) this.#addLast(reading, kind, { as: LAST_IS_BELOW, to: further })
    if (fills) this.#addLast(reading, kind, { as: LAST_FILLS, to: further })
  }

  /** Adds what a reading leads to with its last segment empty, if something takes that segment. */
  #addLast(reading: string, kind: number, { as, to }: { as: EmptySegments; to: Set<Matches<T>> }): void {
    const { matches } = this.#searchReading(reading, kind, as)
    if (this.#tree.tookLast) to.add(matches)
  }

  #searchReading(reading: string, kind: number, empty?: EmptySegments): Found<T> {
    const tree = this.#tree
    const alone = empty === undefined ? tree.search(reading, kind) : tree.searchEmpty(reading, kind, empty)
    if (alone === undefined) return this.#lists.of(tree.found)
    alone.alone ??= this.#lists.of(tree.ranksOf(alone))
    return alone
  }

  #kindOf(method: string | undefined): number {
    // Where no entry names a method, it does not matter which one it is.
    if (method === undefined || method === '') return this.#anyKinds.length === 1 ? OTHER_METHOD : NO_METHOD
    return this.#kindByMethod.get(method) ?? this.#kindByMethod.get(method.toUpperCase()) ?? OTHER_METHOD
  }

  #nameKinds(methods: readonly string[]): void {
    for (const method of methods) {
      if (!this.#kindByMethod.has(method)) this.#kindByMethod.set(method, FIRST_NAMED + this.#kindByMethod.size)
      if (method === 'GET') this.#nameKinds(['HEAD'])
    }
  }

  /** The kinds of requests that an entry for some methods is for. */
  #kindsOf(methods: readonly string[] | undefined): ReadonlySet<number> | undefined {
    if (methods === undefined) return undefined
    const named = methods.includes('GET') ? [...methods, 'HEAD'] : methods
    return new Set(named.map((method) => this.#kindByMethod.get(method)!))
  }
}

/** What the readings looked at so far lead to. */
interface Gathered<T> extends ReadingMatches<T> {
  readonly sure: Set<Matches<T>>
  readonly further: Set<Matches<T>>
}

function patternOf(text: string): ResourcePattern {
  const pattern = parsePattern(text)
  if (!('problem' in pattern)) return pattern
  throw new SluiceError('SLUICE_INVALID_RULE_SET', {
    problem: `a resource cannot be used: ${pattern.problem}`,
    received: text,
    expected: 'a path such as "/orders/:id" or "/files/*", a name, or "*"',
  })
}
