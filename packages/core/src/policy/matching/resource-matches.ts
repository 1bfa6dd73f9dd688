/** How many different lists of matches, and of matches of several readings, are kept to be handed out again. */
const MOST_LISTS = 65_536
const MOST_COMBINED = 4096

/** Matches, and a note that a caller attached to them. */
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
  matches: Matches<T> | undefined = undefined
}

/** What the readings of a resource lead to, by each method that the request may have. */
export interface ReadingMatches<T> {
  /** What must be among the matches of every reading for something to hold with certainty. At least one. */
  readonly sure: ReadonlySet<Matches<T>>
  /** What holds besides: some servers have these readings as well, and who lifts limits does not ask for them. */
  readonly further: ReadonlySet<Matches<T>>
}

/**
 * Makes lists of matches, and hands out again those it made before. Entries are known by their rank: their place in the
 * order of specificity, which is also that of the lists.
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

  /** The lists of some ranks, in rising order. */
  of(ranks: readonly number[]): Matches<T> {
    let listed = this.#listed
    for (let index = 0; index < ranks.length; index++) {
      const longer = listed.longer.get(ranks[index]!)
      if (longer === undefined) return this.#newMatches(ranks)
      listed = longer
    }
    return listed.matches ?? this.#newMatches(ranks)
  }

  /** The matches of several readings as one. */
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
