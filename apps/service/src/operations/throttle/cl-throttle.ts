import type { FailureMode } from '@sluice/core'
import { joinKey, type Store } from '@sluice/core'
import { compileRule, createBatch, createItem, decide, MICROS_PER_SECOND, NEVER } from '@sluice/core/internal'
import type { Batch } from '@sluice/core/store'
import type { ThrottleCounts } from '../../observability/metrics/check-metrics.ts'
import { isNear } from '../../observability/metrics/check-metrics.ts'

/** A limit that a caller names with its numbers, as redis-cell does. */
export interface ThrottleRequest {
  readonly key: string
  /** Units that can be taken at once, beyond the first. */
  readonly maxBurst: number
  /** Units that come back in each period. */
  readonly count: number
  readonly periodSeconds: number
  /** 0 takes nothing. */
  readonly quantity: number
  /** Whose limit it is; undefined for callers without a tenant. */
  readonly tenant: string | undefined
}

/** The answer of redis-cell: whole numbers, seconds rounded up. */
export interface ThrottleAnswer {
  allowed: boolean
  limit: number
  /** 0 if it is unknown, because the store did not answer and the failure mode allowed the call. */
  remaining: number
  /** -1 if allowed, and if the quantity can never fit. */
  retryAfterSeconds: number
  resetAfterSeconds: number
  /** How it was decided without the store; undefined if the store decided. */
  failure: FailureMode | undefined
}

/** Largest burst, count and quantity. */
export const MAX_UNITS = 1_000_000_000

/** Longest period, in seconds: about 31 years. */
export const MAX_PERIOD_SECONDS = 1_000_000_000

/** One limit by its numbers. */
interface AdHocLimit {
  readonly maxBurst: number
  readonly count: number
  readonly periodSeconds: number
  readonly isOfTenant: boolean
  /** For stores that answer at once; others get a new batch for each call. */
  readonly reused: Batch
  newBatch(): Batch
}

/**
 * Limits that exist because a caller named their numbers. GCRA, in the store of the rules: exact across threads and
 * nodes, with the deadline and the failure mode of the store. Each combination of numbers counts on its own.
 */
export class AdHocLimits {
  readonly #store: Store
  readonly #limits = new Map<string, AdHocLimit>()
  /** Most callers use few limits, in long runs. */
  #last: AdHocLimit | undefined
  readonly #answer: ThrottleAnswer = emptyAnswer()
  /** Maximum number of different limits. Each takes memory until the process ends. */
  readonly max: number

  constructor(store: Store, max: number) {
    this.#store = store
    this.max = max
  }

  /** Whether the store does, so that answers are never promises. */
  get answersAtOnce(): boolean {
    return this.#store.mode === 'sync'
  }

  /** Number of limits that were named so far. */
  get size(): number {
    return this.#limits.size
  }

  /**
   * Decides, at once if the store does. An answer that comes at once is reused by the next call. Numbers must be whole,
   * `count` and `periodSeconds` 1 or more, none above its maximum. Undefined if there are too many limits already.
   */
  throttle(request: ThrottleRequest): ThrottleAnswer | Promise<ThrottleAnswer> | undefined {
    const limit = this.#limitOf(request)
    if (limit === undefined) return undefined
    const store = this.#store
    const { key, quantity, tenant } = request
    const batch = store.mode === 'sync' ? limit.reused : limit.newBatch()
    const item = batch.items[0]!
    item.key = tenant === undefined ? key : joinKey([tenant, key])
    item.cost = quantity
    batch.charge = quantity > 0
    if (store.mode !== 'sync') return decide(store as Store<'async'>, batch, FINISH)
    ;(store as Store<'sync'>).decide(batch)
    return answerOn(batch, this.#answer)
  }

  #limitOf({ maxBurst, count, periodSeconds, tenant }: ThrottleRequest): AdHocLimit | undefined {
    const last = this.#last
    const isOfTenant = tenant !== undefined
    if (
      last !== undefined &&
      last.maxBurst === maxBurst &&
      last.count === count &&
      last.periodSeconds === periodSeconds &&
      last.isOfTenant === isOfTenant
    ) {
      return last
    }
    // Keys of tenants are joined with the tenant, so they need counters that other keys cannot name.
    const name = `*CL.THROTTLE${isOfTenant ? '@tenant' : ''}:${maxBurst}:${count}:${periodSeconds}`
    const known = this.#limits.get(name)
    if (known !== undefined || this.#limits.size >= this.max) {
      this.#last = known ?? last
      return known
    }
    const window = `${periodSeconds}s` as const
    const limits = compileRule(name, { algorithm: 'gcra', limit: count, burst: maxBurst + 1, window })
    const newBatch = (): Batch => createBatch(limits.map((limit) => createItem(limit, '', 1)))
    const made: AdHocLimit = { maxBurst, count, periodSeconds, isOfTenant, newBatch, reused: newBatch() }
    this.#limits.set(name, made)
    this.#last = made
    return made
  }
}

const FINISH = { finish: (batch: Batch): ThrottleAnswer => answerOn(batch, emptyAnswer()) }

function emptyAnswer(): ThrottleAnswer {
  return {
    allowed: false,
    limit: 0,
    remaining: 0,
    retryAfterSeconds: 0,
    resetAfterSeconds: 0,
    failure: undefined,
  }
}

function answerOn(batch: Batch, answer: ThrottleAnswer): ThrottleAnswer {
  const { limit, verdict, blockedUntil } = batch.items[0]!
  const isUnknown = batch.failure?.mode === 'open'
  const retryAt = Math.max(verdict.retryAt, blockedUntil)
  answer.allowed = batch.allowed
  answer.failure = batch.failure?.mode
  answer.limit = limit.capacity
  answer.remaining = isUnknown || blockedUntil > batch.now ? 0 : verdict.remaining
  answer.retryAfterSeconds = batch.allowed || retryAt === NEVER ? -1 : secondsUntil(retryAt, batch.now)
  answer.resetAfterSeconds = isUnknown ? 0 : secondsUntil(verdict.resetAt, batch.now)
  return answer
}

function secondsUntil(micros: number, now: number): number {
  return micros > now ? Math.ceil((micros - now) / MICROS_PER_SECOND) : 0
}

/**
 * Adds up decisions, so that they are reported together. `CL.THROTTLE` takes a microsecond in all: to report each
 * decision would be a part of it that can be measured.
 */
export class ThrottleTally {
  #counts = noCounts()
  #isEmpty = true

  add({ allowed, limit, remaining, retryAfterSeconds, failure }: ThrottleAnswer): void {
    const counts = this.#counts
    this.#isEmpty = false
    if (failure !== undefined) counts[failure]++
    if (allowed) {
      counts.allowed++
      if (failure !== 'open' && isNear(remaining, limit)) counts.near++
    } else if (failure === 'closed') counts.unavailable++
    else if (retryAfterSeconds < 0) counts.never++
    else counts.limit++
  }

  /** What was added since the last call; undefined if nothing was. */
  take(): ThrottleCounts | undefined {
    if (this.#isEmpty) return undefined
    const counts = this.#counts
    this.#counts = noCounts()
    this.#isEmpty = true
    return counts
  }
}

function noCounts(): Record<keyof ThrottleCounts, number> {
  return { allowed: 0, near: 0, limit: 0, never: 0, unavailable: 0, open: 0, closed: 0, local: 0 }
}
