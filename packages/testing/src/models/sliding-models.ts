import type { Limit } from '@sluice/core/store'
import type { ReferenceModel } from './reference-model.ts'

interface Entry {
  readonly at: number
  readonly cost: number
}

function costOf(entries: readonly Entry[]): number {
  return entries.reduce((sum, { cost }) => sum + cost, 0)
}

/** Every call in a list; those younger than the window count. */
export function logModel(limit: Extract<Limit, { algorithm: 'sliding-window-log' }>): ReferenceModel {
  const taken: Entry[] = []
  return {
    left({ now }) {
      const used = costOf(taken.filter(({ at }) => at > now - limit.windowMicros))
      return Math.max(0, limit.limit - used)
    },
    take: ({ now }, cost) => void taken.push({ at: now, cost }),
  }
}

/** Every call in a list, with its sub-window; those of this sub-window and of as many before as make a window count. */
export function segmentsModel(limit: Extract<Limit, { algorithm: 'sliding-window-segments' }>): ReferenceModel {
  const length = Math.ceil(limit.windowMicros / limit.segments)
  const segmentOf = (at: number): number => Math.floor(at / length)
  const taken: Entry[] = []
  return {
    left({ now }) {
      const oldest = segmentOf(now) - limit.segments
      const used = costOf(taken.filter(({ at }) => segmentOf(at) >= oldest))
      return Math.max(0, limit.limit - used)
    },
    take: ({ now }, cost) => void taken.push({ at: now, cost }),
  }
}

/** Every call in a list; the window before counts by the part of it still in view, rounded up to whole units. */
export function slidingCounterModel(limit: Extract<Limit, { algorithm: 'sliding-window-counter' }>): ReferenceModel {
  const window = BigInt(limit.windowMicros)
  const taken: Entry[] = []
  const usedIn = (index: bigint): bigint => BigInt(costOf(taken.filter(({ at }) => BigInt(at) / window === index)))
  return {
    left({ now }) {
      const index = BigInt(now) / window
      const inView = (index + 1n) * window - BigInt(now)
      const weighted = (usedIn(index - 1n) * inView + window - 1n) / window
      const left = BigInt(limit.limit) - usedIn(index) - weighted
      return left < 0n ? 0 : Number(left)
    },
    take: ({ now }, cost) => void taken.push({ at: now, cost }),
  }
}
