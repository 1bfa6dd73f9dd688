import type { Batch, Limit } from '@sluice/core/store'

/** Maximum number of limits of a bulk check. */
const MAX_LIMITS = 64

/** The limits of a batch about one key that a bulk check supports: buckets and simple windows only. */
export interface BulkLimits {
  readonly limits: readonly Limit[]
  /** Number of values in the state of each limit. */
  readonly sizes: readonly number[]
  /** Bytes before the first value in a record that holds these limits and nothing else. */
  readonly headerBytes: number
}

/**
 * A trie of limits in order, one level per limit. Weak, because overrides and tiers create limits that are dropped
 * later: an entry lives as long as all its limits do.
 */
class TrieNode {
  #next: WeakMap<Limit, TrieNode> | undefined = undefined
  entry: BulkLimits | undefined = undefined

  after(limit: Limit): TrieNode {
    this.#next ??= new WeakMap()
    let node = this.#next.get(limit)
    if (node === undefined) {
      node = new TrieNode()
      this.#next.set(limit, node)
    }
    return node
  }
}

const root = new TrieNode()

/** The result of the last call: consecutive batches mostly have the same limits. */
let last: BulkLimits | undefined

/**
 * The limits of a batch, the same object for the same limits. Undefined when a bulk check does not support the batch.
 */
export function bulkLimitsOf(batch: Batch): BulkLimits | undefined {
  const { items } = batch
  const { key, cost } = items[0]!
  if (!batch.charge || cost === 0 || items.length > MAX_LIMITS) return undefined
  for (let index = 1; index < items.length; index++) {
    if (items[index]!.key !== key || items[index]!.cost !== cost) return undefined
  }
  if (last !== undefined && hasLimits(items, last.limits)) return last
  if (!items.every((item) => isSupported(item.limit))) return undefined
  let node = root
  for (let index = 0; index < items.length; index++) node = node.after(items[index]!.limit)
  node.entry ??= createBulkLimits(batch)
  last = node.entry
  return last
}

function createBulkLimits({ items }: Batch): BulkLimits {
  const limits = items.map((item) => item.limit)
  return { limits, sizes: limits.map((limit) => limit.stateSize), headerBytes: 3 + 10 * limits.length }
}

function hasLimits(items: Batch['items'], limits: readonly Limit[]): boolean {
  if (limits.length !== items.length) return false
  for (let index = 0; index < items.length; index++) if (items[index]!.limit !== limits[index]) return false
  return true
}

/** The fast paths of lua/decide.lua read these. */
function isSupported(limit: Limit): boolean {
  switch (limit.algorithm) {
    case 'token-bucket':
    case 'leaky-bucket-meter':
    case 'gcra':
    case 'sliding-window-counter':
      return true
    case 'fixed-window':
      return typeof limit.window === 'number' && limit.rolloverMax === 0
    default:
      return false
  }
}
