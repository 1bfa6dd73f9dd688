import { joinKey } from '../../store/key.ts'
import type { Random } from '../../system/random.ts'
import { canonicalPattern, PatternSpellings } from '../matching/resource-pattern.ts'
import type { Dimension } from '../rule-set/rule-set.ts'
import { EntityTable, type Place, type ValueForm } from './entity-table.ts'
import type { Override, OverrideTerms } from './live-entry.ts'

/** The resource of overrides that are for every rule of their dimension. */
const EVERY_RESOURCE = '*'

/**
 * Which overrides can hold for a rule: made once for each rule, so that a decision does not name its resource again. It
 * may be used with any table; it remembers where it last found something.
 */
export class OverrideScope {
  readonly dimension: Dimension
  /** As rules write it, in any spelling. */
  readonly resource: string
  /** The names of the places to look in, the first one before the second. */
  readonly exactName: string
  readonly everyName: string
  /** Those places in a table, as of a version of it; kept by the table. */
  table: OverrideTable | undefined = undefined
  version = 0
  exact: Place<OverrideTerms> | undefined = undefined
  every: Place<OverrideTerms> | undefined = undefined

  constructor(dimension: Dimension, resource: string) {
    this.dimension = dimension
    this.resource = resource
    this.exactName = placeName(dimension, canonicalPattern(resource))
    this.everyName = placeName(dimension, EVERY_RESOURCE)
  }
}

/**
 * Overrides, millions of them in 20 to 60 bytes each: neither the entity nor the resource can be read back. A `Map`
 * takes 60 to 90 bytes for each, and stops the thread while it grows. A lookup takes the same time for any number of
 * overrides, and none where a rule has none. For one thread.
 */
export class OverrideTable extends EntityTable<OverrideTerms> {
  readonly #spellings = new PatternSpellings()

  /** `random`: keys the hash, so that callers cannot choose names that collide. */
  constructor(random: Random) {
    super(random, TERMS)
  }

  /**
   * The terms for an entity: of an override for the resource of the scope, else of one for every resource of its
   * dimension. Equal terms are always the same object, frozen. Does not allocate. What has expired at `nowMs` is
   * dropped.
   */
  termsOf(scope: OverrideScope, entity: string, nowMs: number): OverrideTerms | undefined {
    if (scope.version !== this.placesVersion || scope.table !== this) this.#enter(scope)
    const { exact, every } = scope
    const terms = exact === undefined ? undefined : this.find(exact, entity, nowMs)
    if (terms !== undefined || every === undefined) return terms
    return this.find(every, entity, nowMs)
  }

  /** Puts an override, or another in its place. One that has expired already is a removal. */
  putOverride({ dimension, resource, entity, terms, expiresAt }: Override, nowMs: number): void {
    this.put({ place: this.#placeName(dimension, resource), entity }, { value: terms, expiresAt }, nowMs)
  }

  /** Removes an override; false when it was not there. The resource may have any spelling that rules may have. */
  removeOverride(dimension: Dimension, entity: string, resource: string): boolean {
    return this.remove(this.#placeName(dimension, resource), entity)
  }

  #enter(scope: OverrideScope): void {
    scope.table = this
    scope.version = this.placesVersion
    scope.exact = this.placeOf(scope.exactName)
    scope.every = scope.everyName === scope.exactName ? undefined : this.placeOf(scope.everyName)
  }

  #placeName(dimension: Dimension, resource: string): string {
    return placeName(dimension, this.#spellings.canonical(resource))
  }
}

function placeName(dimension: Dimension, canonicalResource: string): string {
  return joinKey([dimension, canonicalResource])
}

const TERMS: ValueForm<OverrideTerms> = { textOf: textOfTerms, keep: frozenTerms }

function textOfTerms({ limit, window, burst, windows, multiplier }: OverrideTerms): string {
  const text = `${partText(limit)} ${partText(window)} ${partText(burst)} ${partText(multiplier)}`
  if (windows === undefined) return text
  const parts = windows.map((each) => `;${partText(each.limit)} ${partText(each.window)} ${partText(each.burst)}`)
  return `${text}${parts.join('')};`
}

/** Numbers as they are and texts in quotes: no part can be taken for another. */
function partText(part: number | string | undefined): string {
  return typeof part === 'string' ? JSON.stringify(part) : String(part)
}

/** A frozen copy: it is shared by all overrides with equal terms. */
function frozenTerms(terms: OverrideTerms): OverrideTerms {
  if (terms.windows === undefined) return Object.freeze({ ...terms })
  return Object.freeze({
    ...terms,
    windows: Object.freeze(terms.windows.map((window) => Object.freeze({ ...window }))),
  })
}
