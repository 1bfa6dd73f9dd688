import type { Found, Matches } from './resource-matches.ts'
import type { ResourcePattern } from './resource-pattern.ts'

const SLASH = 0x2f

/**
 * A node of the tree of segments. An entry is identified by its rank: its position in the order of specificity.
 *
 * If a node has only one descendant path, and nothing ends before its end, the segments of that path are stored in the
 * node itself (path compression). That keeps the number of nodes, and so of cache misses, small: with thousands of
 * rules, cache misses cost the time, not steps.
 */
class Place<T> implements Found<T> {
  // Fields that most searches read come first, so that they are close together in memory.
  /** The only way on: a literal segment, or undefined for any one segment. The entries are those at its end. */
  way: readonly (string | undefined)[] | undefined = undefined
  /** Whether all entries apply to its end and to all methods: then the result depends on nothing else. */
  isPlain = false
  note: unknown = undefined
  /** The cached result if only the entries for everything match besides. */
  alone: Matches<T> | undefined = undefined
  literals: Map<string, Place<T>> | undefined = undefined
  any: Place<T> | undefined = undefined
  /** Entries whose pattern ends here, and those that match everything below. */
  ends: number[] = []
  rests: number[] = []

  get matches(): Matches<T> {
    return this.alone!
  }
}

/** How a search interprets the empty segments of a path, because routers differ. */
export interface EmptySegments {
  /** Whether a trailing slash is followed by an empty segment; else it makes no difference. */
  readonly keepsLast: boolean
  /** Whether a parameter matches an empty segment; else only `*` at the end does. */
  readonly fillsParameters: boolean
}

/** An entry to find. Its rank is its index in the list. */
export interface TreeEntry {
  readonly pattern: ResourcePattern
  /** Whether it is for paths with a trailing slash: then nothing after that slash is searched for. */
  readonly ownsSlash: boolean
  /** Numbers of the methods it applies to; all if undefined. */
  readonly kinds: ReadonlySet<number> | undefined
}

/**
 * Finds the ranks of the entries that match one reading of a resource. Follows the segments of a path through a tree,
 * and visits each node at most once.
 */
export class ResourceTree<T> {
  readonly #root = new Place<T>()
  readonly #names = new Map<string, number[]>()
  readonly #everything: number[] = []
  /** By rank: the numbers of the methods; all if undefined. */
  readonly #kinds: readonly (ReadonlySet<number> | undefined)[]
  /** Ranks of the entries for paths with a trailing slash. */
  readonly #owners: ReadonlySet<number>
  // State of the current search.
  #reading = ''
  #kind = 0
  /** End of the last segment: before the end of the reading if a trailing slash is dropped. */
  #end = 0
  // Changed, and restored, only by a search for empty segments.
  /** Start of the empty segment at the end if it is kept; else -1. */
  #lastFrom = -1
  #fillsParameters = false
  /** Whether the current match includes the empty segment at the end. */
  #isTakingLast = false
  // Results.
  readonly #found: number[] = []
  /** The node whose entries, not yet added to the results, are the only ones so far. */
  #alone: Place<T> | undefined = undefined
  /** Whether the trailing slash belongs to a visited entry. */
  #isOwned = false
  #hasParameterNext = false
  #hasRestNext = false
  #tookLast = false

  constructor(entries: readonly TreeEntry[]) {
    this.#kinds = entries.map(({ kinds }) => kinds)
    this.#owners = new Set([...entries.keys()].filter((rank) => entries[rank]!.ownsSlash))
    for (const [rank, { pattern }] of entries.entries()) this.#ranksAt(pattern).push(rank)
    const isForAll = (rank: number): boolean => this.#kinds[rank] === undefined
    shorten(this.#root, new Map(), this.#everything.every(isForAll) ? isForAll : () => false)
  }

  /** The ranks found by the last search, in ascending order, unless it returned a node. Valid until the next search. */
  get found(): readonly number[] {
    return this.#found
  }

  /** Whether an entry that the last search did not visit has a parameter after the dropped slash. */
  get hasParameterNext(): boolean {
    return this.#hasParameterNext
  }

  /** Whether an entry matches everything after the slash that the last search dropped. */
  get hasRestNext(): boolean {
    return this.#hasRestNext
  }

  /** Whether a result of the last search for empty segments includes the one at the end. */
  get tookLast(): boolean {
    return this.#tookLast
  }

  /**
   * Searches for the matches of a reading and a kind of method. A trailing slash makes no difference, and no parameter
   * matches an empty segment. Returns the node whose entries, together with those for everything, are the result for
   * any method; else undefined, and `found` has the ranks.
   */
  search(reading: string, kind: number): Place<T> | undefined {
    const { length } = reading
    this.#end = length
    if (reading.charCodeAt(length - 1) === SLASH) {
      this.#isOwned = false
      // A slash that is kept is followed by an empty segment.
      if (this.#lastFrom < 0) this.#end--
    }
    this.#reading = reading
    this.#kind = kind
    this.#found.length = 0
    this.#alone = undefined
    this.#hasParameterNext = false
    this.#hasRestNext = false
    if (reading.charCodeAt(0) === SLASH) this.#follow(this.#root, 1)
    else this.#take(this.#names.get(reading))
    const alone = this.#alone as Place<T> | undefined
    if (alone === undefined) this.#take(this.#everything)
    return alone
  }

  /** The same, with empty segments as segments. */
  searchEmpty(reading: string, kind: number, { keepsLast, fillsParameters }: EmptySegments): Place<T> | undefined {
    this.#tookLast = false
    this.#fillsParameters = fillsParameters
    if (keepsLast) this.#lastFrom = reading.length
    const alone = this.search(reading, kind)
    this.#fillsParameters = false
    this.#lastFrom = -1
    return alone
  }

  /** The ranks of a node that a search returned, and those for everything. */
  ranksOf(place: Place<T>): readonly number[] {
    return [...place.ends, ...this.#everything]
  }

  /** Finds the matches of the segments from a position on, most specific first. */
  #follow(place: Place<T>, from: number): void {
    const { way } = place
    if (way !== undefined) {
      this.#followWay(place, way, from)
      return
    }
    if (from > this.#end) {
      this.#arrive(place)
      return
    }
    if (from === this.#lastFrom) {
      this.#followLast(place, from)
      return
    }
    const reading = this.#reading
    const slash = reading.indexOf('/', from)
    const end = slash < 0 ? reading.length : slash
    const { literals, any } = place
    if (literals !== undefined) {
      const literal = literals.get(reading.slice(from, end))
      if (literal !== undefined) this.#follow(literal, end + 1)
    }
    if (any !== undefined && (end > from || this.#fillsParameters)) this.#follow(any, end + 1)
    this.#take(place.rests)
  }

  /** Follows the only way on from a node. */
  #followWay(place: Place<T>, way: readonly (string | undefined)[], from: number): void {
    const at = this.#pass(way, from)
    if (at < 0) return
    if (at > this.#end) this.#arriveAlone(place)
    else if (at === this.#lastFrom) this.#followLast(place, at)
    else this.#take(place.rests)
  }

  /** The position after all segments of a compressed path; -1 if the path differs. */
  #pass(way: readonly (string | undefined)[], from: number): number {
    const reading = this.#reading
    let at = from
    for (let index = 0; index < way.length; index++) {
      const literal = way[index]
      if (at > this.#end) {
        if (literal === undefined && index === way.length - 1) this.#meetParameterNext()
        return -1
      }
      const slash = reading.indexOf('/', at)
      const end = slash < 0 ? reading.length : slash
      if (literal === undefined) {
        if (end === at && !this.#fillsAt(at)) return -1
      } else if (end - at !== literal.length || !reading.startsWith(literal, at)) {
        return -1
      }
      at = end + 1
    }
    return at
  }

  /** At a node where the path ends. */
  #arrive(place: Place<T>): void {
    this.#isTakingLast = this.#lastFrom >= 0
    this.#take(place.ends)
    this.#take(place.rests)
    this.#isTakingLast = false
    if (this.#end < this.#reading.length) this.#lookPast(place)
  }

  /** At the end of a compressed path, where the path ends too. */
  #arriveAlone(place: Place<T>): void {
    if (!place.isPlain || this.#alone !== undefined || this.#found.length > 0) {
      this.#arrive(place)
      return
    }
    this.#alone = place
    if (this.#lastFrom >= 0) this.#tookLast = true
    else if (this.#end < this.#reading.length) this.#lookPast(place)
  }

  /** Checks whether anything matches after the dropped slash. */
  #lookPast(place: Place<T>): void {
    this.#isOwned ||= this.#owns(place)
    if (this.#isOwned) return
    if (place.rests.length > 0) this.#hasRestNext = true
    const next = place.way === undefined ? place.any : undefined
    if (next !== undefined && next.way === undefined && next.ends.length + next.rests.length > 0) {
      this.#hasParameterNext = true
    }
  }

  #meetParameterNext(): void {
    if (this.#end < this.#reading.length && !this.#isOwned) this.#hasParameterNext = true
  }

  /** Finds what matches the empty segment at the end. */
  #followLast(place: Place<T>, from: number): void {
    this.#isOwned ||= this.#owns(place)
    const next = place.way === undefined ? place.any : undefined
    if (next !== undefined && this.#fillsParameters && !this.#isOwned) this.#follow(next, from + 1)
    this.#isTakingLast = !this.#isOwned
    this.#take(place.rests)
    this.#isTakingLast = false
  }

  /** Whether a parameter matches an empty segment at a position. */
  #fillsAt(at: number): boolean {
    return this.#fillsParameters && !(this.#isOwned && at === this.#lastFrom)
  }

  /** Whether an entry that ends at a node owns the slash after it. */
  #owns({ ends }: Place<T>): boolean {
    if (this.#owners.size === 0) return false
    return ends.some((rank) => this.#owners.has(rank) && (this.#kinds[rank]?.has(this.#kind) ?? true))
  }

  #take(ranks: readonly number[] | undefined): void {
    if (ranks === undefined || ranks.length === 0) return
    const alone = this.#alone
    if (alone !== undefined) {
      // It is no longer the only one.
      this.#alone = undefined
      for (const rank of alone.ends) this.#found.push(rank)
    }
    const found = this.#found
    const before = found.length
    for (let index = 0; index < ranks.length; index++) {
      const rank = ranks[index]!
      const kinds = this.#kinds[rank]
      if (kinds === undefined || kinds.has(this.#kind)) found.push(rank)
    }
    if (this.#isTakingLast && found.length > before) this.#tookLast = true
  }

  /** Finds the node for an entry; creates the nodes on the way. */
  #ranksAt({ kind, segments, hasRest }: ResourcePattern): number[] {
    if (kind === 'all') return this.#everything
    if (kind === 'name') return presentIn(this.#names, segments[0]!, () => [])
    let place = this.#root
    for (const segment of segments) {
      if (segment === undefined) {
        place.any ??= new Place<T>()
        place = place.any
      } else {
        place.literals ??= new Map()
        place = presentIn(place.literals, segment, () => new Place<T>())
      }
    }
    return hasRest ? place.rests : place.ends
  }
}

/**
 * Stores the segments of paths without branches in the node where they start. `known`: existing segments and paths;
 * equal ones become the same object, so that thousands of rules with the same ending share one in memory. `isForAll`:
 * whether an entry applies to all methods.
 */
function shorten<T>(
  place: Place<T>,
  known: Map<string, readonly (string | undefined)[]>,
  isForAll: (rank: number) => boolean,
): void {
  const way: (string | undefined)[] = []
  let last = place
  for (let next = onlyNext(last); next !== undefined; next = onlyNext(last)) {
    way.push(next.segment)
    last = next.place
  }
  if (last.literals === undefined && last.any === undefined && last !== place) {
    const text = JSON.stringify(way.map((segment) => segment ?? null))
    const kept = known.get(text) ?? way
    known.set(text, kept)
    place.way = kept
    place.ends = last.ends
    place.rests = last.rests
    place.literals = undefined
    place.any = undefined
  }
  if (place.rests.length === 0) place.isPlain = place.ends.every(isForAll)
  if (place.ends.length === 0) place.ends = NOTHING
  if (place.rests.length === 0) place.rests = NOTHING
  for (const child of place.literals?.values() ?? []) shorten(child, known, isForAll)
  if (place.any !== undefined) shorten(place.any, known, isForAll)
}

/** No entries: one shared list, because a separate one would be another cache miss. */
const NOTHING: number[] = []

/** The only way on from a node; undefined if something ends there, or there are several or none. */
function onlyNext<T>({
  literals,
  any,
  ends,
  rests,
}: Place<T>): { segment: string | undefined; place: Place<T> } | undefined {
  if (ends.length + rests.length > 0 || (literals?.size ?? 0) + (any === undefined ? 0 : 1) !== 1) return undefined
  if (any !== undefined) return { segment: undefined, place: any }
  const [[segment, place] = ['', new Place<T>()]] = literals!
  return { segment, place }
}

function presentIn<V>(map: Map<string, V>, key: string, create: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = create()
    map.set(key, value)
  }
  return value
}
