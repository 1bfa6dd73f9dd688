import type { Found, Matches } from './resource-matches.ts'
import type { ResourcePattern } from './resource-pattern.ts'

const SLASH = 0x2f

/**
 * A place in the tree of segments. Entries are known by their rank: their place in the order of specificity.
 *
 * Where only one way leads on, and nothing ends before its end, the segments of that way are kept in the place where it
 * begins. Places are then few, and each is one that has to be looked at: with thousands of rules what costs time is
 * memory that was not looked at lately, not steps.
 */
class Place<T> implements Found<T> {
  // What most searches look at comes first, so that it lies together.
  /** The only way on: a text, or undefined for any one segment. The entries are those at its end. */
  way: readonly (string | undefined)[] | undefined = undefined
  /** Whether all entries are for its end and for all methods: what is found then depends on nothing else. */
  isPlain = false
  note: unknown = undefined
  /** What was found when there was nothing else besides the entries for everything. */
  alone: Matches<T> | undefined = undefined
  literals: Map<string, Place<T>> | undefined = undefined
  any: Place<T> | undefined = undefined
  /** Entries whose pattern ends here, and those that hold for everything from here on. */
  ends: number[] = []
  rests: number[] = []

  get matches(): Matches<T> {
    return this.alone!
  }
}

/** What a search takes the empty segments of a path for, because routers differ in it. */
export interface EmptySegments {
  /** Whether a slash at the end of a path is followed by an empty segment; else it makes no difference. */
  readonly keepsLast: boolean
  /** Whether a parameter takes an empty segment; else nothing but everything below does. */
  readonly fillsParameters: boolean
}

/** An entry to be found. Its rank is its place in the list. */
export interface TreeEntry {
  readonly pattern: ResourcePattern
  /** Whether it is for paths with a slash at the end: what comes after that slash is then not looked for. */
  readonly ownsSlash: boolean
  /** Numbers of the methods it is for; all when undefined. */
  readonly kinds: ReadonlySet<number> | undefined
}

/**
 * Finds the ranks of the entries that hold for one reading of a resource. The segments of a path are followed through a
 * tree, each place of which is looked at once at most.
 */
export class ResourceTree<T> {
  readonly #root = new Place<T>()
  readonly #names = new Map<string, number[]>()
  readonly #everything: number[] = []
  /** By rank: the numbers of the methods, all when undefined. */
  readonly #kinds: readonly (ReadonlySet<number> | undefined)[]
  /** Ranks of the entries that own their slash. */
  readonly #owners: ReadonlySet<number>
  // What is searched for: of one search at a time.
  #reading = ''
  #kind = 0
  /** Where the last segment ends: before the end of the reading, when the slash there is dropped. */
  #end = 0
  // What only a search for empty segments changes, and changes back.
  /** Where the empty segment at the end begins, when it is kept; else -1. */
  #lastFrom = -1
  #fillsParameters = false
  /** Whether what is taken now takes the empty segment at the end. */
  #isTakingLast = false
  // What was found.
  readonly #found: number[] = []
  /** The place whose entries, not yet among the found, are the only ones so far. */
  #alone: Place<T> | undefined = undefined
  /** Whether the slash at the end belongs to an entry that was met. */
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

  /**
   * The ranks that the last search found, in rising order; not when it met a place alone. Good until the next search.
   */
  get found(): readonly number[] {
    return this.#found
  }

  /** Whether an entry that the last search did not look at has a parameter after the slash that it dropped. */
  get hasParameterNext(): boolean {
    return this.#hasParameterNext
  }

  /** Whether an entry is for everything after the slash that the last search dropped. */
  get hasRestNext(): boolean {
    return this.#hasRestNext
  }

  /** Whether something that the last search for empty segments found takes the one at the end. */
  get tookLast(): boolean {
    return this.#tookLast
  }

  /**
   * Searches for what holds for a reading and a kind of method, where a slash at the end makes no difference and no
   * parameter is empty. Gives the place whose entries, and those for everything, are all there is, whatever the method;
   * else undefined, and `found` has the ranks.
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

  /** The same where empty segments are something. */
  searchEmpty(reading: string, kind: number, { keepsLast, fillsParameters }: EmptySegments): Place<T> | undefined {
    this.#tookLast = false
    this.#fillsParameters = fillsParameters
    if (keepsLast) this.#lastFrom = reading.length
    const alone = this.search(reading, kind)
    this.#fillsParameters = false
    this.#lastFrom = -1
    return alone
  }

  /** The ranks at a place that a search gave, and those for everything. */
  ranksOf(place: Place<T>): readonly number[] {
    return [...place.ends, ...this.#everything]
  }

  /** Finds what matches the segments from a position on, the most specific first. */
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

  /** Follows the only way from a place on. */
  #followWay(place: Place<T>, way: readonly (string | undefined)[], from: number): void {
    const at = this.#pass(way, from)
    if (at < 0) return
    if (at > this.#end) this.#arriveAlone(place)
    else if (at === this.#lastFrom) this.#followLast(place, at)
    else this.#take(place.rests)
  }

  /** The position after all segments of a way; -1 when the path is another. */
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

  /** At a place where the path ends. */
  #arrive(place: Place<T>): void {
    this.#isTakingLast = this.#lastFrom >= 0
    this.#take(place.ends)
    this.#take(place.rests)
    this.#isTakingLast = false
    if (this.#end < this.#reading.length) this.#lookPast(place)
  }

  /** At the end of the only way, where the path ends too. */
  #arriveAlone(place: Place<T>): void {
    if (!place.isPlain || this.#alone !== undefined || this.#found.length > 0) {
      this.#arrive(place)
      return
    }
    this.#alone = place
    if (this.#lastFrom >= 0) this.#tookLast = true
    else if (this.#end < this.#reading.length) this.#lookPast(place)
  }

  /** Sees whether anything is to be had after the slash that was dropped. */
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

  /** Finds what takes the empty segment at the end. */
  #followLast(place: Place<T>, from: number): void {
    this.#isOwned ||= this.#owns(place)
    const next = place.way === undefined ? place.any : undefined
    if (next !== undefined && this.#fillsParameters && !this.#isOwned) this.#follow(next, from + 1)
    this.#isTakingLast = !this.#isOwned
    this.#take(place.rests)
    this.#isTakingLast = false
  }

  /** Whether an empty segment at a position is taken by a parameter. */
  #fillsAt(at: number): boolean {
    return this.#fillsParameters && !(this.#isOwned && at === this.#lastFrom)
  }

  /** Whether an entry that ends at a place owns the slash after it. */
  #owns({ ends }: Place<T>): boolean {
    if (this.#owners.size === 0) return false
    return ends.some((rank) => this.#owners.has(rank) && (this.#kinds[rank]?.has(this.#kind) ?? true))
  }

  #take(ranks: readonly number[] | undefined): void {
    if (ranks === undefined || ranks.length === 0) return
    const alone = this.#alone
    if (alone !== undefined) {
      // It is not alone any more.
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

  /** Where the rank of an entry belongs; makes the places on the way. */
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
 * Keeps the segments of ways without branches in the place where they begin. `known`: texts and ways that are there
 * already; equal ones become the same object, so that thousands of rules with the same ending share one in memory.
 * `isForAll`: whether what is found of an entry does not depend on the method.
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

/** No entries: one list for all places, because a list of its own would have to be fetched. */
const NOTHING: number[] = []

/** Where the only way on from a place leads; undefined when something ends there, or there are several or none. */
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
