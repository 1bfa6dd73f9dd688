import { systemRandom, systemTimers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { CompiledUpstream } from '../config/compiled-config.ts'
import { DEFAULTS, type UpstreamConfig } from '../config/gateway-config.ts'
import { type Balancer, createBalancer } from './balancer.ts'
import type { Instance } from './instance.ts'
import { checkIntervalMs, InstanceSet, type InstanceSetParts } from './instance-set.ts'
import { resolveBySystem } from './name-resolver.ts'
import { PriorityReserve } from './priority-reserve.ts'
import { RetryBudget } from './retry-budget.ts'
import type { Attempt, BalancedRequest, NoInstance, Upstream, UpstreamStats } from './upstream.ts'

/**
 * What an upstream needs of its process. Defaults: clock, timers, randomness and name resolution of the system, no log.
 */
export type UpstreamParts = Partial<InstanceSetParts>

const MS_PER_SECOND = 1000

/**
 * The instances of one upstream, and the choice between them.
 *
 * @throws if a file of `tls` cannot be read, or an option is out of range
 */
export function createUpstream(name: string, config: CompiledUpstream, parts: UpstreamParts = {}): Upstream {
  return new BalancedUpstream(name, config, {
    nowMs: systemMonotonicMs,
    timers: systemTimers,
    random: systemRandom,
    resolve: resolveBySystem,
    log: { info: () => undefined, warn: () => undefined },
    ...parts,
  })
}

class BalancedUpstream implements Upstream {
  readonly name: string
  readonly hashBy: string | undefined
  readonly #nowMs: () => number
  readonly #balancer: Balancer
  readonly #budget = new RetryBudget()
  readonly #reserve = new PriorityReserve()
  readonly #set: InstanceSet
  readonly #checkIntervalMs: number
  #instances: readonly Instance[] = []
  /** Reused by every choice. */
  readonly #candidates: Instance[] = []
  #withoutHealthy = 0
  #withoutCapacity = 0

  constructor(name: string, config: CompiledUpstream, parts: InstanceSetParts) {
    this.name = name
    this.hashBy = config.balance === 'hash' ? hashedValue(config) : undefined
    this.#nowMs = parts.nowMs
    this.#balancer = createBalancer(config.balance ?? DEFAULTS.balance)
    this.#checkIntervalMs = checkIntervalMs(config)
    this.#set = new InstanceSet({ name, config }, parts, (instances) => {
      this.#instances = instances
      this.#balancer.update(instances)
    })
  }

  get isAvailable(): boolean {
    const nowMs = this.#nowMs()
    return this.#instances.some((instance) => instance.isUsable(nowMs))
  }

  choose({ hashKey, priority }: BalancedRequest, tried?: ReadonlySet<string>): Attempt | NoInstance {
    const nowMs = this.#nowMs()
    this.#reserve.note(priority, nowMs)
    const usable = this.#findCandidates(priority, nowMs)
    const candidates = this.#candidates
    if (candidates.length === 0) return usable === 0 ? this.#noHealthyInstance(nowMs) : this.#noCapacity()
    if (tried === undefined || tried.size === 0) this.#budget.countRequest(nowMs)
    else dropTried(candidates, tried)
    return this.#balancer.pick(candidates, hashKey, nowMs).begin(nowMs)
  }

  takeRetry(share: number): boolean {
    return this.#budget.take(share, this.#nowMs())
  }

  stats(): UpstreamStats {
    return {
      name: this.name,
      instances: this.#instances.map((instance) => instance.stats()),
      unresolved: this.#set.unresolved(),
      retries: { taken: this.#budget.taken, denied: this.#budget.denied },
      turnedAway: { noHealthyInstance: this.#withoutHealthy, noCapacity: this.#withoutCapacity },
    }
  }

  start(): Promise<void> {
    return this.#set.start()
  }

  close(): Promise<void> {
    return this.#set.close()
  }

  /** Fills `#candidates` with the usable instances that have room; returns how many are usable. */
  #findCandidates(priority: number, nowMs: number): number {
    const candidates = this.#candidates
    let count = 0
    let usable = 0
    for (const instance of this.#instances) {
      if (!instance.isUsable(nowMs)) continue
      usable++
      const { limit } = instance
      if (limit !== undefined && instance.inFlight >= this.#reserve.slotsFor(priority, limit.limit, nowMs)) continue
      candidates[count++] = instance
    }
    // To empty and refill it would allocate it anew.
    if (candidates.length !== count) candidates.length = count
    return usable
  }

  #noCapacity(): NoInstance {
    this.#withoutCapacity++
    return { reason: 'no-capacity', retryAfterSeconds: 1 }
  }

  /** `Retry-After` is when the first breaker admits a probe, or the next health check. */
  #noHealthyInstance(nowMs: number): NoInstance {
    this.#withoutHealthy++
    let shortestMs = this.#checkIntervalMs
    for (const instance of this.#instances) {
      if (instance.isHealthy) shortestMs = Math.min(shortestMs, instance.pauseLeftMs(nowMs))
    }
    return {
      reason: 'no-healthy-instance',
      retryAfterSeconds: Math.max(1, Math.ceil(shortestMs / MS_PER_SECOND)),
    }
  }
}

function hashedValue({ hashBy = 'ip', sessionCookie }: UpstreamConfig): string {
  return hashBy === 'session' ? `cookie:${sessionCookie}` : hashBy
}

/** Leaves the candidates that have not been tried, unless all have been. */
function dropTried(candidates: Instance[], tried: ReadonlySet<string>): void {
  let kept = 0
  for (let index = 0; index < candidates.length; index++) {
    const instance = candidates[index]!
    if (!tried.has(instance.id)) candidates[kept++] = instance
  }
  if (kept > 0) candidates.length = kept
}
