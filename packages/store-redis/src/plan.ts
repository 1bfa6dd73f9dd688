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

const plans = new WeakMap<Limit, Plan[]>()

/** The plan of a batch, or undefined when it must be asked in the general way. */
export function planOf(batch: Batch): Plan | undefined {
  const { items } = batch
  const { key, cost, limit } = items[0]!
  if (!batch.charge || cost === 0 || items.length > MOST_LIMITS) return undefined
  for (const item of items) if (item.key !== key || item.cost !== cost || !isPlainLimit(item.limit)) return undefined
  const known = plans.get(limit) ?? []
  const found = known.find(({ limits }) => isSameList(limits, items))
  return found ?? createPlan(batch, known)
}

function createPlan({ items }: Batch, known: Plan[]): Plan {
  const limits = items.map((item) => item.limit)
  const plan = { limits, sizes: limits.map((limit) => limit.stateSize), headerBytes: 3 + 10 * limits.length }
  plans.set(limits[0]!, [...known, plan])
  return plan
}

function isSameList(limits: readonly Limit[], items: Batch['items']): boolean {
  return limits.length === items.length && items.every((item, index) => item.limit === limits[index])
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
