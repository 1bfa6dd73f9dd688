import { SluiceError } from '../../errors.ts'
import type { Dimension, RequestMatch } from '../rule-set/rule-set.ts'
import type { Cidr } from './cidr.ts'
import { parseCidr } from './cidr.ts'
import { canonicalPattern } from './resource-pattern.ts'
import { canonicalMethods } from './rule-name.ts'

/** How an entity is written in requests, from how somebody wrote it in a match. */
export type CanonicalEntity = (dimension: Dimension, entity: string) => string

/** The parts of a match that an entry can be found by. */
export type MatchPart = 'entities' | 'cidrs' | 'services' | 'resource'

/** In the order of preference where several would do. */
const PARTS: readonly MatchPart[] = ['entities', 'cidrs', 'services', 'resource']

/** A resource with methods. */
export interface MatchedResource {
  readonly pattern: string
  readonly methods: readonly string[] | undefined
}

/** The resource of a match that names methods only. */
const EVERY_RESOURCE = '*'

/** A match, read. Undefined parts were not given. */
export class MatchParts {
  readonly dimension: Dimension
  readonly entities: ReadonlySet<string> | undefined
  readonly cidrs: readonly Cidr[] | undefined
  readonly services: ReadonlySet<string> | undefined
  readonly resource: MatchedResource | undefined
  /** The same text for equal resources and methods. */
  readonly resourceText: string
  /** The parts that were given. */
  readonly given: readonly MatchPart[]

  /** The match must have been checked: an unreadable address is a `SLUICE_INVALID_RULE_SET`. */
  constructor(match: RequestMatch, canonicalEntity: CanonicalEntity) {
    const { dimension = '', entities, cidrs, services, resource, methods } = match
    this.dimension = dimension
    this.entities = entities && new Set(entities.map((entity) => canonicalEntity(dimension, entity)))
    this.cidrs = cidrs?.map(cidrOf)
    this.services = services && new Set(services)
    this.resource =
      resource === undefined && methods === undefined ? undefined : { pattern: resource ?? EVERY_RESOURCE, methods }
    this.resourceText = this.resource === undefined ? '' : textOfResource(this.resource)
    this.given = PARTS.filter((part) => this[part] !== undefined)
  }

  /** Whether a part that was given is an empty list. */
  isEmpty(part: MatchPart): boolean {
    if (part === 'resource') return this.resource!.methods?.length === 0
    return part === 'cidrs' ? this.cidrs!.length === 0 : this[part]!.size === 0
  }

  /** Texts of what a part names, by which it is seen who else names the same. */
  textsOf(part: MatchPart): readonly string[] {
    switch (part) {
      case 'entities':
        return Array.from(this.entities!, (entity) => `${this.dimension}\0${entity}`)
      case 'cidrs':
        return this.cidrs!.map(({ address, length }) => `${address}/${length}`)
      case 'services':
        return [...this.services!]
      case 'resource':
        return [this.resourceText]
    }
  }
}

/** How many matches name the same, to find the part of a match that it shares with the fewest others. */
export class SharedParts {
  /** Of every part that a match with several ones has: how many matches name each text. */
  readonly #counts = new Map<MatchPart, Map<string, number>>()

  constructor(matches: readonly MatchParts[]) {
    for (const { given } of matches) {
      if (given.length > 1) for (const part of given) if (!this.#counts.has(part)) this.#counts.set(part, new Map())
    }
    for (const match of matches) for (const part of match.given) this.#count(match, part)
  }

  /** The part to find a match by; undefined when nothing was given, or an empty list. */
  rarest(match: MatchParts): MatchPart | undefined {
    const { given } = match
    if (given.some((part) => match.isEmpty(part))) return undefined
    if (given.length === 1) return given[0]
    let rarest: MatchPart | undefined
    let least = Number.POSITIVE_INFINITY
    for (const part of given) {
      const counts = this.#counts.get(part)!
      const most = match.textsOf(part).reduce((count, text) => Math.max(count, counts.get(text)!), 0)
      if (most >= least) continue
      least = most
      rarest = part
    }
    return rarest
  }

  #count(match: MatchParts, part: MatchPart): void {
    const counts = this.#counts.get(part)
    if (counts === undefined) return
    for (const text of match.textsOf(part)) counts.set(text, (counts.get(text) ?? 0) + 1)
  }
}

function textOfResource({ pattern, methods }: MatchedResource): string {
  return JSON.stringify([canonicalPattern(pattern), canonicalMethods(methods)])
}

function cidrOf(text: string): Cidr {
  const cidr = parseCidr(text)
  if (!('problem' in cidr)) return cidr
  throw new SluiceError('SLUICE_INVALID_RULE_SET', {
    problem: `a match has an unusable address: ${cidr.problem}`,
    received: text,
    action: 'Check rule sets before they are used.',
  })
}
