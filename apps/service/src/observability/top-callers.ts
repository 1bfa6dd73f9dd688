import type { TopDimension } from '@sluice/contract'
import type { PolicyRequest } from '@sluice/core/policy'
import type { NowMs, TopKSnapshot } from '@sluice/runtime'
import { keyDigest, mergeTopK, RecentTopK } from '@sluice/runtime'
import { addressNetwork } from '../address-network.ts'

/** What one thread, or several together, know of the callers that were refused most: plain data. */
export interface TopCallersSnapshot {
  /** Refusals before this instant are forgotten; milliseconds since 1970. */
  readonly startedAt: number
  readonly dimensions: readonly { readonly dimension: string; readonly callers: TopKSnapshot }[]
}

/** Callers kept apart in each dimension; those shown are a tenth of them, so that what is shown is nearly exact. */
const CAPACITY = 1000

/** A caller is remembered for so long at least, and for twice as long at most. */
const WINDOW_MS = 5 * 60_000

/** Dimensions that are kept apart; descriptors may be any, but a rule set that counts by more than these is rare. */
const MOST_DIMENSIONS = 16

/** A caller counts by so much of its name. */
const LONGEST_NAME = 256

/** The callers of one thread that were refused most in the last minutes, in bounded memory whoever calls. */
export class TopCallers {
  readonly #nowMs: NowMs
  readonly #sketches = new Map<string, RecentTopK>()

  constructor(nowMs: NowMs) {
    this.#nowMs = nowMs
  }

  /** Counts that `request` was refused for its caller in `dimension`; of a joint one, for each of its parts. */
  refused(request: PolicyRequest, dimension: string): void {
    if (!dimension.includes('+')) this.#count(request, dimension)
    else for (const part of dimension.split('+')) this.#count(request, part)
  }

  snapshot(): TopCallersSnapshot {
    const nowMs = this.#nowMs()
    const dimensions = Array.from(this.#sketches, ([dimension, sketch]) => ({ dimension, callers: sketch.snapshot() }))
    return {
      startedAt: (Math.floor(nowMs / WINDOW_MS) - 1) * WINDOW_MS,
      dimensions: dimensions.map(({ dimension, callers: { total, missed, entries } }) => ({
        dimension,
        callers: { total, missed, entries },
      })),
    }
  }

  #count(request: PolicyRequest, dimension: string): void {
    const name = callerIn(request, dimension)
    if (name === undefined) return
    let sketch = this.#sketches.get(dimension)
    if (sketch === undefined) {
      if (this.#sketches.size >= MOST_DIMENSIONS) return
      sketch = new RecentTopK({ capacity: CAPACITY, windowMs: WINDOW_MS, nowMs: this.#nowMs })
      this.#sketches.set(dimension, sketch)
    }
    sketch.add(name)
  }
}

/** What several threads know together. */
export function mergeTopCallers(snapshots: readonly TopCallersSnapshot[]): TopCallersSnapshot {
  const byDimension = Map.groupBy(
    snapshots.flatMap(({ dimensions }) => dimensions),
    ({ dimension }) => dimension,
  )
  return {
    startedAt: Math.min(...snapshots.map(({ startedAt }) => startedAt)),
    dimensions: Array.from(byDimension, ([dimension, parts]) => ({
      dimension,
      callers: mergeTopK(parts.map(({ callers }) => callers)),
    })),
  }
}

/** Which callers are shown. */
export interface TopCallersView {
  /** Only callers of this dimension. Default: all dimensions. */
  readonly dimension?: string | undefined
  /** Most callers of each dimension. */
  readonly limit: number
  /** Goes into the digests of API keys. */
  readonly secret: Uint8Array
}

/**
 * The callers that were refused most, dimension by dimension. API keys are shown by their digests: whoever may look at this
 * must not learn them.
 */
export function shownCallers(
  { dimensions }: TopCallersSnapshot,
  { dimension: wanted, limit, secret }: TopCallersView,
): readonly TopDimension[] {
  return dimensions
    .filter(({ dimension }) => wanted === undefined || dimension === wanted)
    .map(({ dimension, callers }) => ({
      dimension,
      entries: callers.entries.slice(0, limit).map(({ key, count, missed }) => ({
        entity: dimension === 'apiKey' ? digestOf(key, secret) : key,
        denials: count + missed,
        error: missed,
      })),
    }))
    .toSorted((one, other) => (one.dimension < other.dimension ? -1 : 1))
}

/** A short name of a caller that is not to be written down, the same on all nodes. */
export function digestOf(text: string, secret: Uint8Array): string {
  return keyDigest(text, Buffer.from(secret).toString('hex'))
}

function callerIn(request: PolicyRequest, dimension: string): string | undefined {
  const name = nameIn(request, dimension)
  return name === undefined ? undefined : String(name).slice(0, LONGEST_NAME)
}

function nameIn(request: PolicyRequest, dimension: string): string | number | undefined {
  switch (dimension) {
    case 'user':
      return request.user
    case 'ip':
      return request.ip === undefined ? undefined : addressNetwork(request.ip)
    case 'apiKey':
      return request.apiKey
    case 'tenant':
      return request.tenant
    case 'service':
      return request.service ?? ownDescriptor(request, dimension)
    // All callers together are no caller.
    case 'global':
      return undefined
    default:
      return ownDescriptor(request, dimension)
  }
}

function ownDescriptor({ descriptors }: PolicyRequest, name: string): string | number | undefined {
  return descriptors !== undefined && Object.hasOwn(descriptors, name) ? descriptors[name] : undefined
}
