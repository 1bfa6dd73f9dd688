import { joinKey } from '../../store/key.ts'
import type { Random } from '../../system/random.ts'
import { canonicalPattern, PatternSpellings } from '../matching/resource-pattern.ts'
import type { Dimension } from '../rule-set/rule-set.ts'
import { EntityTable, type Place, type ValueForm } from './entity-table.ts'
import type { Override, OverrideTerms } from './live-entry.ts'

/** The resource of overrides for every rule of their dimension. */
const EVERY_RESOURCE = '*'

/** The dimension whose entities are secrets, so that overrides may name them by digest. */
const SECRET_DIMENSION = 'apiKey'

/** Prefix of an API key's digest in an override. */
const DIGEST_PREFIX = 'digest:'

/** Replaces the dimension for overrides by digest; no dimension has this name. */
const DIGEST_PLACE = 'apiKey digest'

/**
 * Which overrides can apply to a rule: created once per rule, so that a decision need not build names. Works with any
 * table; caches where it last found something.
 */
export class OverrideScope {
  readonly dimension: Dimension
  /** As rules write it, in any spelling. */
  readonly resource: string
  /** Names of the places to look in, in this order. */
  readonly exactName: string
  readonly everyName: string
  /** The same for overrides by digest; undefined for dimensions without. */
  readonly exactDigestName: string | undefined
  readonly everyDigestName: string | undefined
  /** Cache of those places in a table, for a version of it; owned by the table. */
  table: OverrideTable | undefined = undefined
  version = 0
  exact: Place<OverrideTerms> | undefined = undefined
  every: Place<OverrideTerms> | undefined = undefined
  exactDigest: Place<OverrideTerms> | undefined = undefined
  everyDigest: Place<OverrideTerms> | undefined = undefined

  constructor(dimension: Dimension, resource: string) {
    this.dimension = dimension
    this.resource = resource
    this.exactName = placeName(dimension, canonicalPattern(resource))
    this.everyName = placeName(dimension, EVERY_RESOURCE)
    const isSecret = dimension === SECRET_DIMENSION
    this.exactDigestName = isSecret ? placeName(DIGEST_PLACE, canonicalPattern(resource)) : undefined
    this.everyDigestName = isSecret ? placeName(DIGEST_PLACE, EVERY_RESOURCE) : undefined
  }
}

/**
 * Overrides, millions of them in 20 to 60 bytes each: neither the entity nor the resource can be read back. A `Map`
 * takes 60 to 90 bytes for each, and stops the thread while it grows. A lookup takes the same time for any number of
 * overrides, and none if a rule has none. For one thread.
 */
export class OverrideTable extends EntityTable<OverrideTerms> {
  readonly #spellings = new PatternSpellings()
  readonly #digestOf: ((apiKey: string) => string) | undefined

  /**
   * `random`: source of the hash secret, so that callers cannot choose names that collide. `digestOf`: the digest of an
   * API key; without it, an override for `digest:...` applies to a key with that name.
   */
  constructor(random: Random, digestOf?: (apiKey: string) => string) {
    super(random, TERMS)
    this.#digestOf = digestOf
  }

  /**
   * The terms for an entity: of an override for the resource of the scope, else of one for every resource of its
   * dimension. One that names the entity comes before one that names its digest. Equal terms are always the same frozen
   * object. Does not allocate, except for digests. Overrides that have expired at `nowMs` are dropped.
   */
  termsOf(scope: OverrideScope, entity: string, nowMs: number): OverrideTerms | undefined {
    if (scope.version !== this.placesVersion || scope.table !== this) this.#enter(scope)
    const { exact, every } = scope
    const terms = exact === undefined ? undefined : this.find(exact, entity, nowMs)
    if (terms !== undefined) return terms
    const forEvery = every === undefined ? undefined : this.find(every, entity, nowMs)
    if (forEvery !== undefined || (scope.exactDigest === undefined && scope.everyDigest === undefined)) return forEvery
    return this.#termsOfDigest(scope, entity, nowMs)
  }

  #termsOfDigest(scope: OverrideScope, entity: string, nowMs: number): OverrideTerms | undefined {
    const { exactDigest, everyDigest } = scope
    // Such places exist only with a `digestOf`.
    const digest = this.#digestOf!(entity)
    const terms = exactDigest === undefined ? undefined : this.find(exactDigest, digest, nowMs)
    if (terms !== undefined || everyDigest === undefined) return terms
    return this.find(everyDigest, digest, nowMs)
  }

  /** Sets an override. One that has already expired is removed. */
  putOverride({ dimension, resource, entity, terms, expiresAt }: Override, nowMs: number): void {
    this.put(this.#keyOf(dimension, entity, resource), { value: terms, expiresAt }, nowMs)
  }

  /** Removes an override; false when it was not there. The resource may have any spelling that rules may have. */
  removeOverride(dimension: Dimension, entity: string, resource: string): boolean {
    const key = this.#keyOf(dimension, entity, resource)
    return this.remove(key.place, key.entity)
  }

  #enter(scope: OverrideScope): void {
    scope.table = this
    scope.version = this.placesVersion
    scope.exact = this.placeOf(scope.exactName)
    scope.every = scope.everyName === scope.exactName ? undefined : this.placeOf(scope.everyName)
    const { exactDigestName, everyDigestName } = scope
    if (exactDigestName === undefined || everyDigestName === undefined) return
    scope.exactDigest = this.placeOf(exactDigestName)
    scope.everyDigest = everyDigestName === exactDigestName ? undefined : this.placeOf(everyDigestName)
  }

  #keyOf(dimension: Dimension, entity: string, resource: string): { readonly place: string; readonly entity: string } {
    const canonical = this.#spellings.canonical(resource)
    const isDigest = dimension === SECRET_DIMENSION && this.#digestOf !== undefined && entity.startsWith(DIGEST_PREFIX)
    return isDigest
      ? { place: placeName(DIGEST_PLACE, canonical), entity: entity.slice(DIGEST_PREFIX.length) }
      : { place: placeName(dimension, canonical), entity }
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

/** Numbers as they are and strings in quotes: no part can be taken for another. */
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
