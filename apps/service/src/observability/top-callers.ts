import type { TopDimension } from '@sluice/contract'
import type { PolicyRequest } from '@sluice/core/policy'
import type { NowMs, TopKSnapshot } from '@sluice/runtime'
import { keyDigest, mergeTopK, RecentTopK } from '@sluice/runtime'
import { addressNetwork } from '../address-network.ts'

/** The callers that were denied most: plain data of one thread, or of several together. */
export interface TopCallersSnapshot {
  /** Denials before this time are forgotten; milliseconds since 1970. */
  readonly startedAt: number
  readonly dimensions: readonly { readonly dimension: string; readonly callers: TopKSnapshot }[]
}

/** Callers tracked per dimension. A tenth of them is shown, so that the result is nearly exact. */
const CAPACITY = 1000

/** A caller is remembered for this time at least, and for twice as long at most. */
const WINDOW_MS = 5 * 60_000

/** Maximum number of dimensions. Descriptors may have any, but rule sets with more are rare. */
const MOST_DIMENSIONS = 16

/** Maximum length of a caller's name; longer names are cut. */
const LONGEST_NAME = 256

/** The callers of one thread that were denied most in the last minutes, in bounded memory. */
export class TopCallers {
  readonly #nowMs: NowMs
  readonly #sketches = new Map<string, RecentTopK>()

  constructor(nowMs: NowMs) {
    this.#nowMs = nowMs
  }

  /** Counts a denial for the caller of `request` in `dimension`; for a joint dimension, for each of its parts. */
  denied(request: PolicyRequest, dimension: string): void {
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

/** Merges the top callers of several threads. */
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

/** Options of {@link topCallers}. */
export interface TopCallersView {
  /** Only callers of this dimension. Default: all dimensions. */
  readonly dimension?: string | undefined
  /** Maximum number of callers per dimension. */
  readonly limit: number
}

/**
 * The `limit` most denied callers of each dimension, with digests in place of API keys, which neither viewers nor other
 * nodes must learn. The bound for callers that are not listed rises to the highest count that was cut.
 */
export function publishedCallers(
  { startedAt, dimensions }: TopCallersSnapshot,
  { limit, secret }: { readonly limit: number; readonly secret: Uint8Array },
): TopCallersSnapshot {
  const cut = dimensions.map(({ dimension, callers: { total, missed, entries } }) => {
    const dropped = entries.slice(limit).map((entry) => entry.count + entry.missed)
    const kept = entries
      .slice(0, limit)
      .map((entry) => (dimension === 'apiKey' ? { ...entry, key: digestOf(entry.key, secret) } : entry))
    return { dimension, callers: { total, missed: Math.max(missed, ...dropped), entries: kept } }
  })
  return { startedAt, dimensions: cut }
}

/** The callers that were denied most, per dimension, for an answer. `top`: without API keys. */
export function shownCallers(
  { dimensions }: TopCallersSnapshot,
  { dimension: wanted, limit }: TopCallersView,
): readonly TopDimension[] {
  return dimensions
    .filter(({ dimension }) => wanted === undefined || dimension === wanted)
    .map(({ dimension, callers }) => ({
      dimension,
      entries: callers.entries.slice(0, limit).map(({ key, count, missed }) => ({
        entity: key,
        denials: count + missed,
        error: missed,
      })),
    }))
    .toSorted((one, other) => (one.dimension < other.dimension ? -1 : 1))
}

/** A short digest of a caller's name, the same on all nodes. */
export function digestOf(text: string, secret: Uint8Array): string {
  return keyDigest(text, Buffer.from(secret).toString('hex'))
}

/** API keys whose digests are remembered. */
const MOST_DIGESTS = 10_000

/**
 * Gives the digest that answers show for an API key, the same on all nodes of a database. `secret` is read at each use,
 * because it changes when the database is first reached.
 */
export function apiKeyDigests(secret: Uint8Array): (apiKey: string) => string {
  const known = new Map<string, string>()
  let secretText = ''
  return (apiKey) => {
    const text = Buffer.from(secret).toString('hex')
    if (text !== secretText || known.size >= MOST_DIGESTS) known.clear()
    secretText = text
    const found = known.get(apiKey) ?? keyDigest(apiKey.slice(0, LONGEST_NAME), text)
    known.set(apiKey, found)
    return found
  }
}

/** The caller of a request in one dimension, as answers show it; undefined when it has none. */
export function callerIn(request: PolicyRequest, dimension: string): string | undefined {
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
    // The global dimension has no caller.
    case 'global':
      return undefined
    default:
      return ownDescriptor(request, dimension)
  }
}

function ownDescriptor({ descriptors }: PolicyRequest, name: string): string | number | undefined {
  return descriptors !== undefined && Object.hasOwn(descriptors, name) ? descriptors[name] : undefined
}
