import { type Breaker, NOT_ADMITTED } from '@sluice/core/internal'
import type { ConcurrencyLimit } from './concurrency-limit.ts'
import type { InstanceConnection } from './instance-connection.ts'
import type { Attempt, AttemptOutcome, InstanceStats } from './upstream.ts'

/** The part of its weight that an instance begins with in slow start. */
const FIRST_SHARE = 0.1

/** Statuses of an instance, or of what it depends on, that cannot work now. */
const GATEWAY_FAILURES: ReadonlySet<number> = new Set([502, 503, 504])

export interface InstanceParts {
  /** Unique in its upstream, the same on every gateway. */
  readonly id: string
  /** As configured; the same for all addresses of one name. */
  readonly url: string
  readonly weight: number
  readonly connection: InstanceConnection
  readonly breaker: Breaker
  readonly limit: ConcurrencyLimit | undefined
  readonly slowStartMs: number
  /** Whether it takes requests before the first health check. */
  readonly isHealthy: boolean
  /** When it was added, to begin its slow start; undefined: it has all of its weight at once. */
  readonly addedMs: number | undefined
  /** Whether another instance can take requests: a status of the last one is better than none. */
  readonly hasOther: (instance: Instance) => boolean
  readonly nowMs: () => number
}

/** One address of an upstream: its connections, and how it stands. */
export class Instance {
  readonly id: string
  readonly url: string
  readonly authority: string
  readonly weight: number
  readonly connection: InstanceConnection
  readonly limit: ConcurrencyLimit | undefined
  /** Requests sent to it that have not ended. */
  inFlight = 0
  /** Of smooth round robin. */
  credit = 0
  readonly #breaker: Breaker
  readonly #slowStartMs: number
  readonly #hasOther: (instance: Instance) => boolean
  readonly #nowMs: () => number
  #isHealthy: boolean
  /** Since when it is in slow start. */
  #slowSinceMs: number
  #requests = 0
  #failures = 0
  readonly #idle = Promise.withResolvers<void>()
  #isRetired = false

  constructor(parts: InstanceParts) {
    this.id = parts.id
    this.url = parts.url
    this.authority = new URL(parts.url).host
    this.weight = parts.weight
    this.connection = parts.connection
    this.limit = parts.limit
    this.#breaker = parts.breaker
    this.#slowStartMs = parts.slowStartMs
    this.#isHealthy = parts.isHealthy
    this.#slowSinceMs = parts.addedMs ?? Number.NEGATIVE_INFINITY
    this.#hasOther = parts.hasOther
    this.#nowMs = parts.nowMs
  }

  get isHealthy(): boolean {
    return this.#isHealthy
  }

  /** Whether health and breaker let a request through. */
  isUsable(nowMs: number): boolean {
    if (!this.#isHealthy) return false
    const { state } = this.#breaker
    return state === 'closed' || (state === 'open' && this.#breaker.pauseLeftMs(nowMs) === 0)
  }

  /** When the breaker lets the next request through, in milliseconds from now. */
  pauseLeftMs(nowMs: number): number {
    return this.#breaker.pauseLeftMs(nowMs)
  }

  /** The part of its weight that it has now: 1, unless it is in slow start. */
  shareAt(nowMs: number): number {
    if (this.#slowStartMs === 0) return 1
    const passed = (nowMs - this.#slowSinceMs) / this.#slowStartMs
    return passed >= 1 ? 1 : FIRST_SHARE + (1 - FIRST_SHARE) * Math.max(0, passed)
  }

  weightAt(nowMs: number): number {
    return this.#slowStartMs === 0 ? this.weight : this.weight * this.shareAt(nowMs)
  }

  /** The result of active checks. */
  setHealth(isHealthy: boolean): void {
    if (isHealthy && !this.#isHealthy) this.beginSlowStart()
    this.#isHealthy = isHealthy
  }

  /** It can take requests again. */
  beginSlowStart(): void {
    this.#slowSinceMs = this.#nowMs()
    this.credit = 0
  }

  /** It gets no further requests. Resolves when those in flight have ended. */
  retire(): Promise<void> {
    this.#isRetired = true
    if (this.inFlight === 0) this.#idle.resolve()
    return this.#idle.promise
  }

  /** Begins an attempt; `isUsable` must have been true. */
  begin(nowMs: number): Attempt {
    const ticket = this.#breaker.admit(nowMs)
    if (ticket === NOT_ADMITTED) throw new Error(`${this.id} was chosen although its breaker is open.`)
    this.inFlight++
    this.#requests++
    return new InstanceAttempt(this, ticket, nowMs)
  }

  /** Ends an attempt that {@link begin} began at `startedMs`. */
  end(ticket: number, startedMs: number, outcome: AttemptOutcome): void {
    const nowMs = this.#nowMs()
    if (this.limit !== undefined && outcome.kind !== 'cancelled') {
      const latencyMs = outcome.kind === 'response' ? outcome.headersMs : undefined
      this.limit.record({ startedMs, latencyMs, inFlight: this.inFlight }, nowMs)
    }
    this.inFlight--
    if (this.#isRetired && this.inFlight === 0) this.#idle.resolve()
    if (outcome.kind === 'cancelled') {
      this.#breaker.withdrawn(ticket)
    } else if (outcome.kind === 'failure' || (GATEWAY_FAILURES.has(outcome.status) && this.#hasOther(this))) {
      this.#failures++
      this.#breaker.failed(ticket, nowMs)
    } else {
      this.#breaker.succeeded(ticket, nowMs)
    }
  }

  stats(): InstanceStats {
    return {
      instance: this.id,
      url: this.url,
      health: this.#isHealthy ? 'healthy' : 'unhealthy',
      breaker: this.#breaker.state,
      inFlight: this.inFlight,
      weight: this.weightAt(this.#nowMs()),
      concurrencyLimit: this.limit?.limit,
      requests: this.#requests,
      failures: this.#failures,
    }
  }
}

class InstanceAttempt implements Attempt {
  readonly #instance: Instance
  readonly #ticket: number
  readonly #startedMs: number
  #isFinished = false

  constructor(instance: Instance, ticket: number, startedMs: number) {
    this.#instance = instance
    this.#ticket = ticket
    this.#startedMs = startedMs
  }

  get instance(): string {
    return this.#instance.id
  }

  get url(): string {
    return this.#instance.url
  }

  get authority(): string {
    return this.#instance.authority
  }

  get dispatcher(): Attempt['dispatcher'] {
    return this.#instance.connection.dispatcher
  }

  get protocol(): Attempt['protocol'] {
    return this.#instance.connection.protocol
  }

  finish(outcome: AttemptOutcome): void {
    if (this.#isFinished) throw new Error(`An attempt on ${this.#instance.id} was finished twice.`)
    this.#isFinished = true
    this.#instance.end(this.#ticket, this.#startedMs, outcome)
  }
}
