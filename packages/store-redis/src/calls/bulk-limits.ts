import type { Batch, Limit } from '@sluice/core/internal'

/** Most limits of a run; more are asked in the general way. */
const MOST_LIMITS = 64

/** The limits of a question about one key that runs can ask: a level or a plain window each. */
export interface Plan {
  readonly limits: readonly Limit[]
  /** Values of each limit's state. */
  readonly sizes: readonly number[]
  /** Bytes before the first value in a record that has these limits and nothing else. */
  readonly headerBytes: number
}

/**
 * Plans by their limits in order: one step per limit. Weak, because overrides and tiers create limits that are dropped later: a
 * plan lives as long as all its limits do.
 */
class PlanNode {
  #next: WeakMap<Limit, PlanNode> | undefined = undefined
  plan: Plan | undefined = undefined

  after(limit: Limit): PlanNode {
    this.#next ??= new WeakMap()
    let node = this.#next.get(limit)
    if (node === undefined) {
      node = new PlanNode()
      this.#next.set(limit, node)
    }
    return node
  }
}

const root = new PlanNode()

/** The plan asked for last: most questions have the same. */
let last: Plan | undefined

/** The plan of a batch, or undefined when it must be asked in the general way. */
export function planOf(batch: Batch): Plan | undefined {
  const { items } = batch
  const { key, cost } = items[0]!
  if (!batch.charge || cost === 0 || items.length > MOST_LIMITS) return undefined
  for (let index = 1; index < items.length; index++) {
    if (items[index]!.key !== key || items[index]!.cost !== cost) return undefined
  }
  if (last !== undefined && isSameList(last.limits, items)) return last
  if (!items.every((item) => isPlainLimit(item.limit))) return undefined
  let node = root
  for (let index = 0; index < items.length; index++) node = node.after(items[index]!.limit)
  node.plan ??= createPlan(batch)
  last = node.plan
  return last
}

function createPlan({ items }: Batch): Plan {
  const limits = items.map((item) => item.limit)
  return { limits, sizes: limits.map((limit) => limit.stateSize), headerBytes: 3 + 10 * limits.length }
}

function isSameList(limits: readonly Limit[], items: Batch['items']): boolean {
  if (limits.length !== items.length) return false
  for (let index = 0; index < items.length; index++) if (items[index]!.limit !== limits[index]) return false
  return true
}

/** See lua/includes/runs.lua. */
function isPlainLimit(limit: Limit): boolean {
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
