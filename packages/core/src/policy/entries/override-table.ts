import { joinKey } from '../../store/key.ts'
import type { Random } from '../../system/random.ts'
import { canonicalPattern, PatternSpellings } from '../matching/resource-pattern.ts'
import type { Dimension } from '../rule-set/rule-set.ts'
import { EntityTable } from './entity-table.ts'
import type { Place, ValueForm } from './interned-values.ts'
import type { Override, OverrideTerms } from './live-entry.ts'

/** The resource of overrides that are for every rule of their dimension. */
const EVERY_RESOURCE = '*'

/**
 * Which overrides can hold for a rule: made once for each rule, so that a decision does not name its resource again. It may
 * be used with any table; it remembers where it last found something.
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
 * Overrides, millions of them in 20 to 60 bytes each: neither who they are for nor their resource can be read back.
 * Finding one takes the same time however many there are, and none where a rule has none. For one thread.
 */
export class OverrideTable {
  readonly #table: EntityTable<OverrideTerms>
  readonly #spellings = new PatternSpellings()

  /** `random`: keys the hash, so that nobody can search for callers that meet in the table. */
  constructor(random: Random) {
    this.#table = new EntityTable(random, TERMS)
  }

  /** Overrides held; expired ones that nobody has met since are among them. */
  get size(): number {
    return this.#table.size
  }

  /** Distinct terms held. */
  get distinctTerms(): number {
    return this.#table.distinctValues
  }

  /**
   * The terms for an entity: of an override for the resource of the scope, else of one for every resource of its dimension.
   * Equal terms are always the same object, frozen. Does not allocate. What has expired at `nowMs` is dropped.
   */
  find(scope: OverrideScope, entity: string, nowMs: number): OverrideTerms | undefined {
    if (scope.version !== this.#table.placesVersion || scope.table !== this) this.#enter(scope)
    const { exact, every } = scope
    const terms = exact === undefined ? undefined : this.#table.find(exact, entity, nowMs)
    if (terms !== undefined || every === undefined) return terms
    return this.#table.find(every, entity, nowMs)
  }

  /** Puts an override, or another in its place. One that has expired already is a removal. */
  put(override: Override, nowMs: number): void {
    const { dimension, resource, entity, terms, expiresAt } = override
    this.#table.put({ place: this.#placeName(dimension, resource), entity }, { value: terms, expiresAt }, nowMs)
  }

  /** Removes an override; false when it was not there. */
  remove(dimension: Dimension, entity: string, resource: string): boolean {
    return this.#table.remove(this.#placeName(dimension, resource), entity)
  }

  /** From now on it is noted what is put. One that was begun before and not ended is begun anew. */
  beginReload(): void {
    this.#table.beginReload()
  }

  /** Drops what was not put since the reload was begun. */
  endReload(nowMs: number): void {
    this.#table.endReload(nowMs)
  }

  /** Drops all, and ends a reload that is under way. */
  clear(): void {
    this.#table.clear()
  }

  #enter(scope: OverrideScope): void {
    scope.table = this
    scope.version = this.#table.placesVersion
    scope.exact = this.#table.placeOf(scope.exactName)
    scope.every = scope.everyName === scope.exactName ? undefined : this.#table.placeOf(scope.everyName)
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
  return `${text}${windows.map((each) => `;${partText(each.limit)} ${partText(each.window)} ${partText(each.burst)}`).join('')};`
}

/** Numbers as they are and texts in quotes: no part can be taken for another. */
function partText(part: number | string | undefined): string {
  return typeof part === 'string' ? JSON.stringify(part) : String(part)
}

/** A copy that nobody can change: it is shared by all who have equal terms. */
function frozenTerms(terms: OverrideTerms): OverrideTerms {
  if (terms.windows === undefined) return Object.freeze({ ...terms })
  return Object.freeze({
    ...terms,
    windows: Object.freeze(terms.windows.map((window) => Object.freeze({ ...window }))),
  })
}
