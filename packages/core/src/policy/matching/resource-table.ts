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

/** A value for a resource. */
export interface ResourceEntry<T> {
  /** See `parsePattern`. */
  readonly pattern: string
  /** HTTP methods it applies to, in any case; all if undefined. */
  readonly methods: readonly string[] | undefined
  readonly value: T
}

/** Number of resources whose matches are cached, and their maximum length in UTF-16 code units. */
const MOST_REMEMBERED = 4096
const LONGEST_REMEMBERED = 256

// Kinds of requests by method. Each method that an entry names is a kind; all others share one.
const OTHER_METHOD = 0
const NO_METHOD = 1
const FIRST_NAMED = 2

// Ways to interpret empty segments. Usually a trailing slash makes no difference, and a parameter does not match an
// empty segment.
const EMPTY_FILLS: EmptySegments = { keepsLast: false, fillsParameters: true }
const LAST_IS_BELOW: EmptySegments = { keepsLast: true, fillsParameters: false }
const LAST_FILLS: EmptySegments = { keepsLast: true, fillsParameters: true }

/**
 * Finds the values for a resource. Immutable. The cost of a lookup depends only on the length of the path and the
 * number of matches, not on the number of entries: the segments of a path are followed through a tree, and the matches
 * of recent resources are cached.
 *
 * Methods are compared case-insensitively. HEAD also counts as GET, because servers handle it like GET.
 *
 * All lists are frozen, and equal matches are the same list while it is cached. So a caller may keep what it derives
 * from a list by its identity, weakly: lists are evicted and created again if there are very many.
 */
export class ResourceTable<T> {
  readonly #tree: ResourceTree<T>
  readonly #lists: MatchLists<T>
  /** Kinds of the methods that entries name. */
  readonly #kindByMethod = new Map<string, number>()
  /** Kinds that a request without a method may have. */
  readonly #anyKinds: readonly number[]
  readonly #recent: MatchCache<Found<T>>

  /** Throws `SLUICE_INVALID_RULE_SET` for an invalid pattern. */
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
   * All values that match a resource in any reading (see `readPath`), most specific first, without duplicates. Without
   * a method, values for some methods match too: omitting the method must not bypass a rule.
   */
  find(resource: string, method: string | undefined): readonly T[] {
    return this.#find(resource, method).matches.united
  }

  /**
   * The same for each reading separately, for callers that use only the most specific values: a reading that matches a
   * rule with a high limit must not hide another that matches a rule with a low one. Nor may one possible method of a
   * request without a method hide another. At least one list; readings with equal matches share one.
   */
  findByReading(resource: string, method: string | undefined): readonly (readonly T[])[] {
    return this.#find(resource, method).matches.byReading
  }

  /** The same with room for a value that the caller derives. */
  findNoted(resource: string, method: string | undefined): Found<T> {
    return this.#find(resource, method)
  }

  /**
   * The values that match in every reading; without a method, only those for all methods. For what lifts limits: no
   * unusual spelling of another resource may match.
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

  /** Searches for a reading without empty segments, except a trailing slash. */
  #searchPlain(reading: string, kind: number): Found<T> {
    const tree = this.#tree
    const found = this.#searchReading(reading, kind)
    if (!(tree.hasParameterNext || tree.hasRestNext)) return found
    const each: Gathered<T> = { sure: new Set(), further: new Set() }
    this.#gather(reading, kind, each)
    return each.further.size === 0 ? found : this.#lists.combine(each)
  }

  /**
   * Adds the matches of a reading for every interpretation of its empty segments. A trailing slash is followed by an
   * empty segment only if an entry asks for one there: otherwise every path that ends in a slash would match more.
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

  /** Adds the matches of a reading whose last segment is empty, if an entry accepts that. */
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
    // If no entry names a method, the method does not matter.
    if (method === undefined || method === '') return this.#anyKinds.length === 1 ? OTHER_METHOD : NO_METHOD
    return this.#kindByMethod.get(method) ?? this.#kindByMethod.get(method.toUpperCase()) ?? OTHER_METHOD
  }

  #nameKinds(methods: readonly string[]): void {
    for (const method of methods) {
      if (!this.#kindByMethod.has(method)) this.#kindByMethod.set(method, FIRST_NAMED + this.#kindByMethod.size)
      if (method === 'GET') this.#nameKinds(['HEAD'])
    }
  }

  /** The kinds of requests that an entry for some methods applies to. */
  #kindsOf(methods: readonly string[] | undefined): ReadonlySet<number> | undefined {
    if (methods === undefined) return undefined
    const named = methods.includes('GET') ? [...methods, 'HEAD'] : methods
    return new Set(named.map((method) => this.#kindByMethod.get(method)!))
  }
}

/** The matches of the readings so far. */
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
