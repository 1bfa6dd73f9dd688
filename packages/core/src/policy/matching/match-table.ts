import { SluiceError } from '../../errors.ts'
import type { PolicyRequest } from '../rule-set/policy-request.ts'
import type { Dimension, RequestMatch } from '../rule-set/rule-set.ts'
import { type Cidr, type CidrBlock, CidrTable, parseCidr } from './cidr.ts'
import { IpAddress } from './ip-address.ts'
import { canonicalPattern } from './resource-pattern.ts'
import { ResourceTable } from './resource-table.ts'
import { canonicalMethods } from './rule-name.ts'

/** Something to find by a request. */
export interface MatchEntry<T> {
  readonly match: RequestMatch
  readonly value: T
  /** Milliseconds since 1970; it matches nothing from then on. Default: never. */
  readonly expiresAt?: number | undefined
}

/** How to compare entries with requests. */
export interface MatchTableOptions {
  /**
   * Effect of a match. If servers disagree about a path, `deny` matches when any interpretation does, and `lift` (of
   * limits) only when all do. The same applies to requests without a method and entries with methods. So no unusual
   * spelling bypasses a denial or reaches an exemption.
   */
  readonly purpose: 'deny' | 'lift'
  /** What {@link EntityOf} returns for an entity of an entry. Default: the same. */
  readonly canonicalEntity?: CanonicalEntity
}

/** The value of a request in a dimension, or undefined if it has none. */
export type EntityOf = (dimension: Dimension) => string | undefined

/** A compiled entry. Undefined parts need no comparison: the entry does not have them, or was found by them. */
class Candidate<T> {
  /** Its index in the list that the table was created from. */
  readonly order: number
  readonly value: T
  readonly expiresAt: number
  readonly dimension: Dimension
  readonly entities: ReadonlySet<string> | undefined
  readonly cidrs: CidrTable<boolean> | undefined
  readonly services: ReadonlySet<string> | undefined
  /** Number of the resource. */
  readonly resource: number | undefined

  constructor(entry: MatchEntry<T>, parts: MatchParts, { order, foundBy, resource }: Finding) {
    this.order = order
    this.value = entry.value
    this.expiresAt = entry.expiresAt ?? Number.POSITIVE_INFINITY
    this.dimension = parts.dimension
    this.entities = foundBy === 'entities' ? undefined : parts.entities
    this.cidrs = foundBy === 'cidrs' || parts.cidrs === undefined ? undefined : tableOf(parts.cidrs)
    this.services = foundBy === 'services' ? undefined : parts.services
    this.resource = foundBy === 'resource' ? undefined : resource
  }
}

interface Finding {
  readonly order: number
  readonly foundBy: MatchPart
  readonly resource: number | undefined
}

const NO_ENTITY: EntityOf = () => undefined
const NO_REQUEST: PolicyRequest = { resource: '' }

/** The request that is being compared, parsed on demand. Each table reuses a single one. */
class Asked {
  readonly #resourceTable: ResourceTable<number>
  readonly #isCertain: boolean
  readonly #address = new IpAddress()
  #hasAddress: boolean | undefined = undefined
  #resources: readonly number[] | undefined = undefined
  request: PolicyRequest = NO_REQUEST
  entityOf: EntityOf = NO_ENTITY
  nowMs = 0

  /** `isCertain`: a resource must match in every interpretation. */
  constructor(resourceTable: ResourceTable<number>, isCertain: boolean) {
    this.#resourceTable = resourceTable
    this.#isCertain = isCertain
  }

  begin(request: PolicyRequest, entityOf: EntityOf, nowMs: number): void {
    this.request = request
    this.entityOf = entityOf
    this.nowMs = nowMs
    this.#hasAddress = undefined
    this.#resources = undefined
  }

  /** The address of the request; undefined if it is missing or invalid. */
  get address(): IpAddress | undefined {
    this.#hasAddress ??= this.request.ip !== undefined && this.#address.read(this.request.ip)
    return this.#hasAddress ? this.#address : undefined
  }

  /** The numbers of the matching resources. */
  get resources(): readonly number[] {
    this.#resources ??= this.#findResources(this.request)
    return this.#resources
  }

  #findResources({ resource, method }: PolicyRequest): readonly number[] {
    const table = this.#resourceTable
    return this.#isCertain ? table.findCertain(resource, method) : table.find(resource, method)
  }

  /** Whether the request has everything else that a candidate requires. */
  meets(candidate: Candidate<unknown>): boolean {
    if (candidate.expiresAt <= this.nowMs) return false
    const { entities, cidrs, services, resource } = candidate
    if (entities !== undefined) {
      const entity = this.entityOf(candidate.dimension)
      if (entity === undefined || !entities.has(entity)) return false
    }
    if (services !== undefined) {
      const { service } = this.request
      if (service === undefined || !services.has(service)) return false
    }
    if (resource !== undefined && !this.resources.includes(resource)) return false
    if (cidrs === undefined) return true
    const { address } = this
    return address !== undefined && cidrs.findBlock(address) !== undefined
  }
}

/** Entities of one dimension, and the entries that are found by them. */
class EntityIndex<T> {
  readonly dimension: Dimension
  readonly found: Map<string, Candidate<T>[]> = new Map()

  constructor(dimension: Dimension) {
    this.dimension = dimension
  }
}

/**
 * Finds the first of many entries that match a request. Built once. Each entry is indexed by one of its parts, the one
 * that it shares with the fewest others; the remaining parts are compared afterwards. The cost does not grow with the
 * number of entries, entities, addresses or resources, as long as few entries have all their parts in common.
 * `entityOf` must not use the table.
 */
export class MatchTable<T> {
  /** True if no request can match. */
  readonly isEmpty: boolean
  readonly #byEntity: EntityIndex<T>[] = []
  readonly #byService = new Map<string, Candidate<T>[]>()
  readonly #byCidr: CidrTable<Candidate<T>>
  readonly #byResource = new Map<number, Candidate<T>[]>()
  readonly #asked: Asked

  /**
   * `entries` must have been checked: throws `SLUICE_INVALID_RULE_SET` for an invalid address. An entry without parts,
   * or with an empty list for a part, matches nothing.
   */
  constructor(entries: readonly MatchEntry<T>[], { purpose, canonicalEntity = asWritten }: MatchTableOptions) {
    const matches = entries.map(({ match }) => new MatchParts(match, canonicalEntity))
    const shared = new SharedParts(matches)
    const resources = new ResourceNumbers()
    const cidrs: { cidr: Cidr; value: Candidate<T> }[] = []
    let size = 0
    for (const [order, parts] of matches.entries()) {
      const foundBy = shared.rarest(parts)
      if (foundBy === undefined) continue
      size++
      const resource = resources.numberOf(parts)
      const candidate = new Candidate(entries[order]!, parts, { order, foundBy, resource })
      if (foundBy === 'cidrs') for (const cidr of parts.cidrs!) cidrs.push({ cidr, value: candidate })
      else if (foundBy === 'resource') addTo(this.#byResource, [resource!], candidate)
      else if (foundBy === 'services') addTo(this.#byService, parts.services!, candidate)
      else addTo(this.#indexOf(parts.dimension).found, parts.entities!, candidate)
    }
    this.#byCidr = new CidrTable(cidrs)
    this.#asked = new Asked(new ResourceTable(resources.list), purpose === 'lift')
    this.isEmpty = size === 0
  }

  /**
   * The value of the first entry that matches a request, or undefined. All parts of an entry must match. An address
   * part does not match a request whose address is missing or invalid.
   */
  find(request: PolicyRequest, entityOf: EntityOf, nowMs: number): T | undefined {
    if (this.isEmpty) return undefined
    const asked = this.#asked
    asked.begin(request, entityOf, nowMs)
    let first: Candidate<T> | undefined
    for (let index = 0; index < this.#byEntity.length; index++) {
      const { dimension, found } = this.#byEntity[index]!
      const entity = entityOf(dimension)
      if (entity !== undefined) first = earliest(found.get(entity), asked, first)
    }
    const { service } = request
    if (service !== undefined && this.#byService.size > 0) first = earliest(this.#byService.get(service), asked, first)
    let block: CidrBlock<Candidate<T>> | undefined
    if (!this.#byCidr.isEmpty && asked.address !== undefined) block = this.#byCidr.findBlock(asked.address)
    for (; block !== undefined; block = block.wider) first = earliest(block.values, asked, first)
    if (this.#byResource.size > 0) {
      const { resources } = asked
      for (let index = 0; index < resources.length; index++) {
        first = earliest(this.#byResource.get(resources[index]!), asked, first)
      }
    }
    return first?.value
  }

  #indexOf(dimension: Dimension): EntityIndex<T> {
    let index = this.#byEntity.find((each) => each.dimension === dimension)
    if (index === undefined) {
      index = new EntityIndex(dimension)
      this.#byEntity.push(index)
    }
    return index
  }
}

/** The distinct resources of a table, by number. */
class ResourceNumbers {
  readonly #numbers = new Map<string, number>()
  readonly list: (MatchedResource & { readonly value: number })[] = []

  numberOf({ resource, resourceText }: MatchParts): number | undefined {
    if (resource === undefined) return undefined
    let number = this.#numbers.get(resourceText)
    if (number === undefined) {
      number = this.list.length
      this.#numbers.set(resourceText, number)
      this.list.push({ ...resource, value: number })
    }
    return number
  }
}

/** The earliest entry that matches: the one found so far, or one of a sorted list. */
function earliest<T>(
  list: readonly Candidate<T>[] | undefined,
  asked: Asked,
  known: Candidate<T> | undefined,
): Candidate<T> | undefined {
  if (list === undefined) return known
  for (let index = 0; index < list.length; index++) {
    const candidate = list[index]!
    if (known !== undefined && known.order <= candidate.order) return known
    if (asked.meets(candidate)) return candidate
  }
  return known
}

/** Lists of one entry are shared by everything that leads to it; longer lists are not. */
function addTo<K, T>(index: Map<K, Candidate<T>[]>, found: Iterable<K>, candidate: Candidate<T>): void {
  const alone = [candidate]
  for (const key of found) {
    const list = index.get(key)
    if (list === undefined) index.set(key, alone)
    else if (list.length > 1) list.push(candidate)
    else index.set(key, [list[0]!, candidate])
  }
}

function tableOf(cidrs: readonly Cidr[]): CidrTable<boolean> {
  return new CidrTable(cidrs.map((cidr) => ({ cidr, value: true })))
}

function asWritten(_dimension: Dimension, entity: string): string {
  return entity
}

/** How requests spell an entity of an entry. */
type CanonicalEntity = (dimension: Dimension, entity: string) => string

/** Parts of a match that can index an entry. */
type MatchPart = 'entities' | 'cidrs' | 'services' | 'resource'

/** In order of preference. */
const PARTS: readonly MatchPart[] = ['entities', 'cidrs', 'services', 'resource']

/** A resource with methods. */
interface MatchedResource {
  readonly pattern: string
  readonly methods: readonly string[] | undefined
}

/** The resource of a match that only names methods. */
const EVERY_RESOURCE = '*'

/** A parsed match. Undefined parts were not given. */
class MatchParts {
  readonly dimension: Dimension
  readonly entities: ReadonlySet<string> | undefined
  readonly cidrs: readonly Cidr[] | undefined
  readonly services: ReadonlySet<string> | undefined
  readonly resource: MatchedResource | undefined
  /** Equal for equal resources and methods. */
  readonly resourceText: string
  /** The given parts. */
  readonly given: readonly MatchPart[]

  /** The match must have been checked: throws `SLUICE_INVALID_RULE_SET` for an invalid address. */
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

  /** Whether a given part is an empty list. */
  isEmpty(part: MatchPart): boolean {
    if (part === 'resource') return this.resource!.methods?.length === 0
    return part === 'cidrs' ? this.cidrs!.length === 0 : this[part]!.size === 0
  }

  /** Strings that identify the values of a part, to count who else has the same. */
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

/** Number of matches that share a value, to find the part that a match shares with the fewest others. */
class SharedParts {
  /** For each part of a match with several: how many matches have each value. */
  readonly #counts = new Map<MatchPart, Map<string, number>>()

  constructor(matches: readonly MatchParts[]) {
    for (const { given } of matches) {
      if (given.length > 1) for (const part of given) if (!this.#counts.has(part)) this.#counts.set(part, new Map())
    }
    for (const match of matches) for (const part of match.given) this.#count(match, part)
  }

  /** The part to index a match by; undefined if it has none, or an empty list. */
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
