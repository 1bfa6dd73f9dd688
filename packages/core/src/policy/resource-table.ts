import { SluiceError } from '../errors.ts'
import { plainReading, readPath } from './path.ts'
import { RecentMap } from './recent-map.ts'
import type { ResourcePattern } from './resource-pattern.ts'
import { compareSpecificity, parsePattern } from './resource-pattern.ts'
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

/** How many different lists of matches, and of matches of several readings, are kept to be handed out again. */
const MOST_LISTS = 65_536
const MOST_COMBINED = 4096

// Kinds of requests by their method. Methods that no entry names are all the same; each that one names is a kind of its own.
const OTHER_METHOD = 0
const NO_METHOD = 1
const FIRST_NAMED = 2

const SLASH = 0x2f

/**
 * A place in the tree of segments. Entries are known by their rank: their place in the order of specificity.
 *
 * Where only one way leads on, and nothing ends before its end, the segments of that way are kept in the place where it begins.
 * Places are then few, and each is one that has to be looked at: with thousands of rules what costs time is memory that was not
 * looked at lately, not steps.
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

/** Matches, and what somebody made of them. */
export interface Found<T> {
  readonly matches: Matches<T>
  /** Kept as long as the same is found; undefined until it is set. */
  note: unknown
}

/** What holds for a resource and a method. Frozen but for its note; the same matches are the same object. */
export class Matches<T> implements Found<T> {
  note: unknown = undefined
  readonly ranks: readonly number[]
  readonly united: readonly T[]
  readonly certain: readonly T[]
  readonly byReading: readonly (readonly T[])[]

  constructor(
    ranks: readonly number[],
    lists: { united: readonly T[]; certain: readonly T[]; byReading: readonly (readonly T[])[] },
  ) {
    this.ranks = ranks
    this.united = Object.freeze(lists.united)
    this.certain = Object.freeze(lists.certain)
    this.byReading = Object.freeze(lists.byReading)
  }

  get matches(): this {
    return this
  }
}

/** A list of matches that was found, in a tree of such lists by the ranks in them. */
class Listed<T> {
  readonly longer = new Map<number, Listed<T>>()
  withMethod: Matches<T> | undefined = undefined
  withoutMethod: Matches<T> | undefined = undefined
}

/**
 * Finds what holds for a resource. Immutable. The cost of finding does not grow with the number of entries, only with the
 * length of the path and the number of matches: the segments of a path are followed through a tree, and the matches of recent
 * resources are remembered.
 *
 * Methods are compared in any case. HEAD is also taken for GET, because servers answer it with what they do for GET.
 *
 * All lists are frozen, and the same matches are the same list, as long as it is remembered: a caller may keep what follows
 * from a list by its identity, weakly, because lists are forgotten and made anew when there are very many.
 */
export class ResourceTable<T> {
  /** By rank. */
  readonly #values: readonly T[]
  readonly #kinds: readonly (ReadonlySet<number> | undefined)[]
  /** Kinds of the methods that entries name. */
  readonly #kindByMethod = new Map<string, number>()
  readonly #root = new Place<T>()
  readonly #names = new Map<string, number[]>()
  readonly #everything: number[] = []
  readonly #recent: RecentMap<Found<T>>
  #listed = new Listed<T>()
  #listedCount = 0
  /** Matches of several readings, by the lists of ranks of each. */
  readonly #combined = new Map<string, Matches<T>>()
  // What is searched for and what was found: of one search at a time.
  #reading = ''
  #kind = OTHER_METHOD
  readonly #found: number[] = []
  /** The place whose entries, not yet among the found, are the only ones so far. */
  #alone: Place<T> | undefined = undefined

  /** Throws `SLUICE_INVALID_RULE_SET` for what is no pattern. */
  constructor(entries: readonly ResourceEntry<T>[]) {
    const ranked = entries
      .map(({ pattern, methods, value }) => ({
        pattern: patternOf(pattern),
        methods: canonicalMethods(methods),
        value,
      }))
      .sort(compareSpecificity)
    this.#values = ranked.map(({ value }) => value)
    for (const { methods } of ranked) this.#nameKinds(methods ?? [])
    this.#kinds = ranked.map(({ methods }) => this.#kindsOf(methods))
    for (const [rank, { pattern }] of ranked.entries()) this.#ranksAt(pattern).push(rank)
    const isForAll = (rank: number): boolean => this.#kinds[rank] === undefined
    shorten(this.#root, new Map(), this.#everything.every(isForAll) ? isForAll : () => false)
    this.#recent = new RecentMap(FIRST_NAMED + this.#kindByMethod.size, MOST_REMEMBERED)
  }

  /**
   * Every value that holds for a resource in any of its readings (see `readPath`), the most specific first, none twice.
   * Without a method, those for some methods hold too: leaving the method out must not lead past a rule.
   */
  find(resource: string, method: string | undefined): readonly T[] {
    return this.#find(resource, method).matches.united
  }

  /**
   * The same for each reading on its own, for whoever takes only the most specific of them: a reading that leads to a rule
   * with a high limit must not hide another that leads to a rule with a low one. At least one list; readings with the same
   * matches have one together.
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
    if (plain !== undefined) return this.#searchReading(plain, kind)
    const readings = readPath(resource)
    if (readings.length === 1) return this.#searchReading(readings[0]!, kind)
    const each = [...new Set(readings.map((reading) => this.#searchReading(reading, kind).matches))]
    return each.length === 1 ? each[0]! : this.#combine(each, kind)
  }

  #searchReading(reading: string, kind: number): Found<T> {
    this.#reading = reading
    this.#kind = kind
    this.#found.length = 0
    this.#alone = undefined
    if (reading.charCodeAt(0) === SLASH) this.#follow(this.#root, 1)
    else this.#take(this.#names.get(reading))
    const alone = this.#alone as Place<T> | undefined
    if (alone === undefined) {
      this.#take(this.#everything)
      return this.#matchesOf(this.#found, kind)
    }
    if (alone.alone === undefined) {
      this.#alone = undefined
      this.#take(alone.ends)
      this.#take(this.#everything)
      alone.alone = this.#matchesOf(this.#found, OTHER_METHOD)
    }
    return alone
  }

  /** Finds what matches the segments from a position on, the most specific first. */
  #follow(place: Place<T>, from: number): void {
    const reading = this.#reading
    const { way } = place
    if (way !== undefined) {
      this.#followWay(place, way, from)
      return
    }
    if (from > reading.length || reading.length === 1) {
      this.#take(place.ends)
      this.#take(place.rests)
      return
    }
    const slash = reading.indexOf('/', from)
    const end = slash < 0 ? reading.length : slash
    const { literals, any } = place
    if (literals !== undefined) {
      const literal = literals.get(reading.slice(from, end))
      if (literal !== undefined) this.#follow(literal, end + 1)
    }
    // An empty segment is none.
    if (any !== undefined && end > from) this.#follow(any, end + 1)
    this.#take(place.rests)
  }

  /** Follows the only way from a place on. */
  #followWay(place: Place<T>, way: readonly (string | undefined)[], from: number): void {
    const reading = this.#reading
    let at = from
    for (let index = 0; index < way.length; index++) {
      if (at > reading.length) return
      const slash = reading.indexOf('/', at)
      const end = slash < 0 ? reading.length : slash
      const literal = way[index]
      if (literal === undefined) {
        if (end === at) return
      } else if (end - at !== literal.length || !reading.startsWith(literal, at)) {
        return
      }
      at = end + 1
    }
    if (at > reading.length) {
      if (place.isPlain && this.#alone === undefined && this.#found.length === 0) {
        this.#alone = place
        return
      }
      this.#take(place.ends)
    }
    this.#take(place.rests)
  }

  #take(ranks: readonly number[] | undefined): void {
    if (ranks === undefined || ranks.length === 0) return
    const alone = this.#alone
    if (alone !== undefined) {
      // It is not alone any more.
      this.#alone = undefined
      this.#take(alone.ends)
    }
    for (let index = 0; index < ranks.length; index++) {
      const rank = ranks[index]!
      const kinds = this.#kinds[rank]
      if (kinds === undefined || kinds.has(this.#kind)) this.#found.push(rank)
    }
  }

  /** The lists of some ranks, in rising order: those handed out before, if there are any. */
  #matchesOf(ranks: readonly number[], kind: number): Matches<T> {
    let listed = this.#listed
    for (let index = 0; index < ranks.length; index++) {
      const longer = listed.longer.get(ranks[index]!)
      if (longer === undefined) return this.#newMatches(ranks, kind)
      listed = longer
    }
    const matches = kind === NO_METHOD ? listed.withoutMethod : listed.withMethod
    return matches ?? this.#newMatches(ranks, kind)
  }

  #newMatches(ranks: readonly number[], kind: number): Matches<T> {
    if (this.#listedCount >= MOST_LISTS) {
      this.#listed = new Listed()
      this.#listedCount = 0
    }
    this.#listedCount++
    let listed = this.#listed
    for (const rank of ranks) {
      let longer = listed.longer.get(rank)
      if (longer === undefined) {
        longer = new Listed()
        listed.longer.set(rank, longer)
      }
      listed = longer
    }
    const united = this.#valuesOf(ranks)
    if (kind !== NO_METHOD) {
      listed.withMethod = new Matches([...ranks], { united, certain: united, byReading: [united] })
      return listed.withMethod
    }
    const certain = this.#valuesOf(ranks.filter((rank) => this.#kinds[rank] === undefined))
    listed.withoutMethod = new Matches([...ranks], { united, certain, byReading: [united] })
    return listed.withoutMethod
  }

  #valuesOf(ranks: readonly number[]): readonly T[] {
    return [...new Set(ranks.map((rank) => this.#values[rank]!))]
  }

  /** The matches of several readings as one. */
  #combine(each: readonly Matches<T>[], kind: number): Matches<T> {
    const key = `${kind === NO_METHOD}:${each.map(({ ranks }) => ranks.join()).join(';')}`
    let combined = this.#combined.get(key)
    if (combined === undefined) {
      combined = this.#newCombined(each, kind)
      if (this.#combined.size >= MOST_COMBINED) this.#combined.clear()
      this.#combined.set(key, combined)
    }
    return combined
  }

  #newCombined(each: readonly Matches<T>[], kind: number): Matches<T> {
    const some = new Set(each.flatMap(({ ranks }) => ranks))
    const union = [...some].sort((one, other) => one - other)
    const common = union.filter((rank) => each.every(({ ranks }) => ranks.includes(rank)))
    const { united } = this.#matchesOf(union, kind)
    const { certain } = this.#matchesOf(common, kind)
    return new Matches(union, { united, certain, byReading: each.map((one) => one.united) })
  }

  #kindOf(method: string | undefined): number {
    if (method === undefined || method === '') return NO_METHOD
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
    const kinds = new Set(named.map((method) => this.#kindByMethod.get(method)!))
    if (methods.length > 0) kinds.add(NO_METHOD)
    return kinds
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
 * Keeps the segments of ways without branches in the place where they begin. `known`: texts and ways that are there already;
 * equal ones become the same object, so that thousands of rules with the same ending share one in memory. `isForAll`: whether
 * what is found of an entry does not depend on the method.
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

function patternOf(text: string): ResourcePattern {
  const pattern = parsePattern(text)
  if (!('problem' in pattern)) return pattern
  throw new SluiceError('SLUICE_INVALID_RULE_SET', {
    problem: `a resource cannot be used: ${pattern.problem}`,
    received: text,
    expected: 'a path such as "/orders/:id" or "/files/*", a name, or "*"',
  })
}
