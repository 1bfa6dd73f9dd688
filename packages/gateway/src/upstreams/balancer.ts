import { HashRing } from '@sluice/runtime'
import type { Instance } from './instance.ts'

/** Chooses one of the instances that can take a request. */
export interface Balancer {
  /** Called when instances come or go. */
  update(instances: readonly Instance[]): void
  /** `candidates` is not empty, in the order of `update`, and not kept. */
  pick(candidates: readonly Instance[], hashKey: string | undefined, nowMs: number): Instance
}

export function createBalancer(kind: 'round-robin' | 'least-connections' | 'hash'): Balancer {
  if (kind === 'hash') return new HashBalancer()
  return kind === 'least-connections' ? new LeastConnections() : new RoundRobin()
}

/**
 * Smooth weighted round robin, as in nginx: every pick adds each weight to its credit, the highest credit wins and pays
 * the sum of the weights. Among n picks every instance has its share, give or take one, without runs of the heaviest.
 */
class RoundRobin implements Balancer {
  update(): void {
    // Credits are kept with the instances.
  }

  pick(candidates: readonly Instance[], _hashKey: string | undefined, nowMs: number): Instance {
    let best = candidates[0]!
    if (candidates.length === 1) return best
    let total = 0
    for (const instance of candidates) {
      const weight = instance.weightAt(nowMs)
      total += weight
      instance.credit += weight
      if (instance.credit > best.credit) best = instance
    }
    best.credit -= total
    return best
  }
}

/**
 * The instance with the fewest requests in flight for its weight; those that are equal take turns.
 *
 * All instances are compared instead of two random ones: counts in flight are those of this process and never stale, so
 * that the exact minimum attracts no herd, and upstreams have few instances.
 */
class LeastConnections implements Balancer {
  #turn = 0

  update(): void {
    // Counts are kept with the instances.
  }

  pick(candidates: readonly Instance[], _hashKey: string | undefined, nowMs: number): Instance {
    const { length } = candidates
    const start = this.#turn++ % length
    let best = candidates[start]!
    let bestLoad = loadOf(best, nowMs)
    for (let step = 1; step < length; step++) {
      const instance = candidates[(start + step) % length]!
      const load = loadOf(instance, nowMs)
      if (load < bestLoad) {
        best = instance
        bestLoad = load
      }
    }
    return best
  }
}

/** What its load would be with one request more. */
function loadOf(instance: Instance, nowMs: number): number {
  return (instance.inFlight + 1) / instance.weightAt(nowMs)
}

/**
 * Consistent hashing. A key goes to its instance on the ring, or to the next one that can take it. An instance in slow
 * start gets a growing part of its keys: the same keys come back first on every gateway, and none comes back twice.
 */
class HashBalancer implements Balancer {
  readonly #withoutKey = new RoundRobin()
  #ring = new HashRing()
  #byId = new Map<string, Instance>()

  update(instances: readonly Instance[]): void {
    this.#byId = new Map(instances.map((instance) => [instance.id, instance]))
    // A ring has weights up to 100.
    const scale = Math.min(1, MOST_RING_WEIGHT / Math.max(...instances.map(({ weight }) => weight)))
    this.#ring = new HashRing({ servers: instances.map(({ id, weight }) => ({ name: id, weight: weight * scale })) })
  }

  pick(candidates: readonly Instance[], hashKey: string | undefined, nowMs: number): Instance {
    if (hashKey === undefined) return this.#withoutKey.pick(candidates, hashKey, nowMs)
    const owner = this.#byId.get(this.#ring.serverFor(hashKey))!
    if (candidates.includes(owner) && isReady(owner, hashKey, nowMs)) return owner
    const order = this.#ring.serversFor(hashKey, this.#ring.size).map((id) => this.#byId.get(id)!)
    const usable = order.filter((instance) => candidates.includes(instance))
    return usable.find((instance) => isReady(instance, hashKey, nowMs)) ?? usable[0]!
  }
}

const MOST_RING_WEIGHT = 100
const HASHES = 2 ** 32

/** Whether a key is in the part that an instance in slow start has. */
function isReady(instance: Instance, hashKey: string, nowMs: number): boolean {
  const share = instance.shareAt(nowMs)
  return share >= 1 || positionOf(hashKey) < share
}

/** A place in [0, 1) that does not depend on the place on the ring (FNV-1a). */
function positionOf(key: string): number {
  let hash = 0x81_1c_9d_c5
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01_00_01_93)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c_1b_3c_6d)
  return ((hash ^ (hash >>> 13)) >>> 0) / HASHES
}
