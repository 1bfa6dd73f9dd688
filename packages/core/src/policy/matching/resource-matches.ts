/** Maximum number of cached lists of matches, and of matches of several readings. */
const MOST_LISTS = 65_536
const MOST_COMBINED = 4096

/** Matches, with a value that a caller derived from them. */
export interface Found<T> {
  readonly matches: Matches<T>
  /** Kept as long as the matches are cached; undefined until it is set. */
  note: unknown
}

/** What matches a resource and a method. Frozen except for its note; equal matches are the same object. */
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

/** A list of matches, in a tree of lists by rank. */
class Listed<T> {
  readonly longer = new Map<number, Listed<T>>()
  matches: Matches<T> | undefined = undefined
}

/** The matches of the readings of a resource, for each method that the request may have. */
export interface ReadingMatches<T> {
  /** A certain match must be among the matches of each of these. At least one. */
  readonly sure: ReadonlySet<Matches<T>>
  /** Further matches: only some servers have these readings, so they are ignored when limits are lifted. */
  readonly further: ReadonlySet<Matches<T>>
}

/**
 * Creates lists of matches, and returns the same object for equal lists. An entry is identified by its rank: its
 * position in the order of specificity, which is also the order of the lists.
 */
export class MatchLists<T> {
  /** By rank. */
  readonly #values: readonly T[]
  #listed = new Listed<T>()
  #count = 0
  /** Matches of several readings, by the lists of ranks of each. */
  readonly #combined = new Map<string, Matches<T>>()

  constructor(values: readonly T[]) {
    this.#values = values
  }

  /** The list for some ranks, in ascending order. */
  of(ranks: readonly number[]): Matches<T> {
    let listed = this.#listed
    for (let index = 0; index < ranks.length; index++) {
      const longer = listed.longer.get(ranks[index]!)
      if (longer === undefined) return this.#newMatches(ranks)
      listed = longer
    }
    return listed.matches ?? this.#newMatches(ranks)
  }

  /** The matches of several readings combined. */
  combine({ sure, further }: ReadingMatches<T>): Matches<T> {
    const each = [...sure, ...further].filter((matches, index, all) => all.indexOf(matches) === index)
    if (each.length === 1) return each[0]!
    const key = `${sure.size}:${each.map(({ ranks }) => ranks.join()).join(';')}`
    let combined = this.#combined.get(key)
    if (combined === undefined) {
      combined = this.#newCombined(each, sure)
      if (this.#combined.size >= MOST_COMBINED) this.#combined.clear()
      this.#combined.set(key, combined)
    }
    return combined
  }

  #newCombined(each: readonly Matches<T>[], sure: ReadonlySet<Matches<T>>): Matches<T> {
    const some = new Set(each.flatMap(({ ranks }) => ranks))
    const union = [...some].sort((one, other) => one - other)
    const common = union.filter((rank) => [...sure].every(({ ranks }) => ranks.includes(rank)))
    const { united } = this.of(union)
    const { certain } = this.of(common)
    return new Matches(union, { united, certain, byReading: each.map((one) => one.united) })
  }

  #newMatches(ranks: readonly number[]): Matches<T> {
    if (this.#count >= MOST_LISTS) {
      this.#listed = new Listed()
      this.#count = 0
    }
    this.#count++
    let listed = this.#listed
    for (const rank of ranks) {
      let longer = listed.longer.get(rank)
      if (longer === undefined) {
        longer = new Listed()
        listed.longer.set(rank, longer)
      }
      listed = longer
    }
    const united = [...new Set(ranks.map((rank) => this.#values[rank]!))]
    listed.matches = new Matches([...ranks], { united, certain: united, byReading: [united] })
    return listed.matches
  }
}
