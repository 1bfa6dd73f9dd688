import { mix32, murmur3 } from './murmur3.ts'
import { requireInteger, requireKnown, requireName, requireNumber } from './option-range.ts'
import { describeValue, RuntimeError } from './runtime-error.ts'

/** A server of a {@link HashRing}. */
export interface HashRingServer {
  /** Not empty, unique in the ring. It alone determines the points on the ring. */
  readonly name: string
  /** Share of keys relative to a server of weight 1; above 0, at most 100. Default: 1. */
  readonly weight?: number | undefined
}

/** Options of {@link HashRing}. */
export interface HashRingOptions {
  /** Initial servers; a name alone means weight 1. Default: none. */
  readonly servers?: readonly (string | HashRingServer)[] | undefined
  /** Virtual nodes of a server of weight 1; 1 to 10000. More spread the keys more evenly. Default: 150. */
  readonly virtualNodes?: number | undefined
}

const DEFAULT_VIRTUAL_NODES = 150

// With one point each, 150 virtual nodes leave a server's share with a standard deviation of 1/sqrt(150) = 8% of an
// even share, so the worst of several servers is often more than 15% away from it (for three in ten sets of 3 to 10
// servers that were tried). Eight points each bring the deviation to 1/sqrt(1200) = 3%, so that 15% is five deviations
// away, for three more steps of the binary search.
const POINTS_PER_VIRTUAL_NODE = 8

// Steps of the golden ratio: inputs of the mixer that differ in many bits. The mixer is one to one, so the points of
// one virtual node are never equal.
const POINT_STEP = 0x9e_37_79_b9

// A point and the rank of its server are sorted as one number of 32 + 20 bits, which a double holds exactly.
const RANKS = 2 ** 20
const NOTHING = new Uint32Array(0)

/**
 * Consistent hashing: gives each key a server so that a change of servers moves as few keys as it can. A new server
 * takes about its share from all others and no key moves between old ones; the keys of a removed server spread over
 * those that stay and no other key moves.
 *
 * The ring has 2^32 places. A server stands on it with 150 virtual nodes by default, and each virtual node at eight
 * points, derived from one digest: 1200 points keep every server within 15% of its even share, which 150 points do
 * not. A key belongs to the first point at or after its own hash, found by binary search: O(log points).
 *
 * The ring is a function of the set of servers: processes that have the same names and weights agree on every key,
 * whatever the order in which the servers came. When two servers have the same point, the name that sorts first (by
 * UTF-16 code units) has it.
 *
 * `add` and `remove` are cheap; the first lookup after a change sorts all points again (about 1 ms for ten servers).
 */
export class HashRing {
  readonly #virtualNodes: number
  readonly #pointsByServer = new Map<string, Uint32Array>()
  #stale = false
  #names: readonly string[] = []
  #points: Uint32Array = NOTHING
  /** For each point, the index of its server in `#names`. */
  #owners: Uint32Array = NOTHING

  constructor(options: HashRingOptions = {}) {
    requireKnown(options, ['servers', 'virtualNodes'])
    const virtualNodes = options.virtualNodes ?? DEFAULT_VIRTUAL_NODES
    this.#virtualNodes = requireInteger('virtualNodes', virtualNodes, { min: 1, max: 10_000 })
    for (const server of options.servers ?? []) this.add(server)
  }

  /** How many servers there are. */
  get size(): number {
    return this.#pointsByServer.size
  }

  /** The names of the servers, sorted. */
  servers(): string[] {
    // No comparator: by code units, the same in every process, where a locale's order is not.
    return [...this.#pointsByServer.keys()].sort()
  }

  /** Whether there is a server of this name. */
  has(name: string): boolean {
    return this.#pointsByServer.has(name)
  }

  /**
   * Adds a server; a name alone means weight 1. Throws `SLUICE_RUNTIME_RING_DUPLICATE_SERVER` for a name that is
   * there already: to change a weight, remove the server first (only keys between it and the others move).
   */
  add(server: string | HashRingServer): void {
    const { name, weight = 1 } = typeof server === 'string' ? { name: server } : server
    requireName('server name', name)
    requireNumber('weight', weight, { min: Number.MIN_VALUE, max: 100 })
    if (this.#pointsByServer.has(name)) {
      throw new RuntimeError('SLUICE_RUNTIME_RING_DUPLICATE_SERVER', {
        received: `server ${describeValue(name)}`,
        expected: 'a name that is not in the ring',
        action: 'Remove the server first to change its weight, or ask has() before.',
      })
    }
    requireInteger('number of servers', this.size + 1, { min: 1, max: RANKS })
    this.#pointsByServer.set(name, pointsOf(name, weight * this.#virtualNodes))
    this.#stale = true
  }

  /** Removes a server; false when there was none of this name. */
  remove(name: string): boolean {
    const removed = this.#pointsByServer.delete(name)
    this.#stale ||= removed
    return removed
  }

  /** The server of `key`, which may be any string. Throws `SLUICE_RUNTIME_RING_EMPTY` when there are no servers. */
  serverFor(key: string): string {
    if (this.#stale) this.#rebuild()
    if (this.#points.length === 0) {
      throw new RuntimeError('SLUICE_RUNTIME_RING_EMPTY', {
        received: 'a lookup in a ring of 0 servers',
        expected: 'at least 1 server',
        action: 'Add a server first, or ask size before the lookup.',
      })
    }
    return this.#ownerOf(this.#indexOf(key))
  }

  /**
   * The first `count` different servers from the place of `key` on, the server of the key first: where to go, and
   * where next when that one is down. All servers when there are fewer than `count`; none when `count` is 0.
   */
  serversFor(key: string, count: number): string[] {
    requireInteger('count', count, { min: 0, max: Number.MAX_SAFE_INTEGER })
    if (this.#stale) this.#rebuild()
    const wanted = Math.min(count, this.size)
    const found = new Set<string>()
    for (let index = wanted === 0 ? 0 : this.#indexOf(key); found.size < wanted; index++) {
      found.add(this.#ownerOf(index % this.#points.length))
    }
    return [...found]
  }

  #ownerOf(index: number): string {
    return this.#names[this.#owners[index] as number] as string
  }

  /** The index of the first point at or after the hash of `key`; past the last point the ring begins again. */
  #indexOf(key: string): number {
    const points = this.#points
    const hash = murmur3(key)
    let low = 0
    let high = points.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((points[middle] as number) < hash) low = middle + 1
      else high = middle
    }
    return low === points.length ? 0 : low
  }

  #rebuild(): void {
    const names = this.servers()
    let total = 0
    for (const points of this.#pointsByServer.values()) total += points.length
    const places = new Float64Array(total)
    let filled = 0
    for (const [rank, name] of names.entries()) {
      for (const point of this.#pointsByServer.get(name) as Uint32Array) places[filled++] = point * RANKS + rank
    }
    // By point, then by rank: equal points come in the order of their servers' names.
    places.sort()
    this.#names = names
    this.#points = new Uint32Array(total)
    this.#owners = new Uint32Array(total)
    for (const [index, place] of places.entries()) {
      const point = Math.floor(place / RANKS)
      this.#points[index] = point
      this.#owners[index] = place - point * RANKS
    }
    this.#stale = false
  }
}

/** The points of a server. A smaller weight has the first of those of a greater one, so a change moves few keys. */
function pointsOf(name: string, virtualNodes: number): Uint32Array {
  const points = new Uint32Array(Math.max(1, Math.round(virtualNodes * POINTS_PER_VIRTUAL_NODE)))
  let digest = 0
  for (let i = 0; i < points.length; i++) {
    const step = i % POINTS_PER_VIRTUAL_NODE
    if (step === 0) digest = murmur3(`${name}:${i / POINTS_PER_VIRTUAL_NODE}`)
    points[i] = mix32(digest + Math.imul(step, POINT_STEP))
  }
  return points
}
