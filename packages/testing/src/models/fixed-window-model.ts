import type { CalendarPeriod } from '@sluice/core/internal'
import type { Limit } from '@sluice/core/store'
import type { ReferenceModel } from './reference-model.ts'

type FixedWindowLimit = Extract<Limit, { algorithm: 'fixed-window' }>

const DAY_MS = 86_400_000

/** Counts a list of what was taken, by the name of the window that each lies in. */
export function fixedWindowModel(limit: FixedWindowLimit): ReferenceModel {
  return limit.rolloverMax > 0 ? rolloverModel(limit) : plainModel(limit)
}

function plainModel(limit: FixedWindowLimit): ReferenceModel {
  const taken: { readonly window: string; readonly cost: number }[] = []
  return {
    left({ now }) {
      const window = windowName(limit.window, now)
      const used = taken.filter((entry) => entry.window === window).reduce((sum, { cost }) => sum + cost, 0)
      return Math.max(0, limit.limit - used)
    },
    take: ({ now }, cost) => void taken.push({ window: windowName(limit.window, now), cost }),
  }
}

/**
 * What is unused carries over once; an unused window leaves all of it; two such windows, and all is forgotten.
 */
function rolloverModel(limit: FixedWindowLimit): ReferenceModel {
  const used = new Map<number, number>()
  const indexOf = (now: number): number => Math.floor(now / (limit.window as number))
  const carryInto = (index: number): number => {
    if (used.has(index - 1)) return clamp(limit.limit + carryInto(index - 1) - used.get(index - 1)!)
    return used.has(index - 2) ? limit.rolloverMax : 0
  }
  const clamp = (units: number): number => Math.max(0, Math.min(limit.rolloverMax, units))
  return {
    left({ now }) {
      const index = indexOf(now)
      return Math.max(0, limit.limit + carryInto(index) - (used.get(index) ?? 0))
    },
    take({ now }, cost) {
      const index = indexOf(now)
      used.set(index, (used.get(index) ?? 0) + cost)
    },
  }
}

/** A name that two instants share exactly when they lie in one window. */
function windowName(window: number | CalendarPeriod, now: number): string {
  if (typeof window === 'number') return String(BigInt(now) / BigInt(window))
  const ms = Math.floor(now / 1000)
  const local = new Intl.DateTimeFormat('sv-SE', {
    timeZone: window.timeZone,
    dateStyle: 'short',
    timeStyle: 'short',
  }).format(ms)
  if (window.period === 'month') return local.slice(0, 7)
  if (window.period === 'day') return local.slice(0, 10)
  if (window.period === 'week') return weekName(local.slice(0, 10), window.weekStart)
  // An hour that is repeated when the clocks go back is another hour: its offset tells them apart.
  const offset = new Intl.DateTimeFormat('en-US', { timeZone: window.timeZone, timeZoneName: 'longOffset' })
    .formatToParts(ms)
    .find((part) => part.type === 'timeZoneName')?.value
  return `${local.slice(0, window.period === 'hour' ? 13 : 16)} ${offset}`
}

function weekName(date: string, weekStart: number): string {
  // 1970-01-01 was a Thursday, day 4 of a week that starts with Sunday as day 0.
  const day = Date.parse(`${date}T00:00Z`) / DAY_MS
  return `week ${Math.floor((day + 4 - weekStart) / 7)}`
}
