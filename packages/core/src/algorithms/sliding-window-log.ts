import type { LogLimit } from '../rule/limit.ts'
import type { Algorithm, State, Verdict } from './algorithm.ts'
import { LATEST, NEVER } from './algorithm.ts'

// State: [at, units, at, units, ...] — one pair for each instant at which units were admitted, oldest first. An entry
// counts while it is younger than the window: at + window > now. Calls of one instant share an entry.

/** Index of the first entry still in view. */
function firstInView(state: State, limit: LogLimit, now: number): number {
  let index = 0
  while (index < state.length && state[index]! + limit.windowMicros <= now) index += 2
  return index
}

function usedFrom(state: State, index: number): number {
  let used = 0
  for (let entry = index; entry < state.length; entry += 2) used += state[entry + 1]!
  return used
}

/** Time does not go back behind the newest entry. */
function notBefore(state: State, now: number): number {
  return state.length > 0 ? Math.max(now, state[state.length - 2]!) : now
}

/**
 * Adds an entry at the end. A list at its full length (after charges beyond the limit) takes it into its newest entry.
 */
function writeEntry(verdict: Verdict, limit: LogLimit, { at, units }: { at: number; units: number }): void {
  const length = verdict.nextLength
  if (length > 0 && (verdict.next[length - 2] === at || length >= 2 * limit.limit)) {
    verdict.next[length - 2] = at
    verdict.next[length - 1] = verdict.next[length - 1]! + units
    return
  }
  verdict.next[length] = at
  verdict.next[length + 1] = units
  verdict.nextLength = length + 2
}

function copyInView(state: State, limit: LogLimit, { index, verdict }: { index: number; verdict: Verdict }): void {
  verdict.nextLength = 0
  for (let entry = index; entry < state.length; entry += 2) {
    writeEntry(verdict, limit, { at: state[entry]!, units: state[entry + 1]! })
  }
}

/** When nothing of the first `length` values is in view any more. */
function emptyAt(values: readonly number[], length: number, { now, limit }: { now: number; limit: LogLimit }): number {
  return length > 0 ? Math.max(now, values[length - 2]! + limit.windowMicros) : now
}

/** When enough of the oldest entries have left the window for `excess` units to fit. */
function leavesAt(state: State, limit: LogLimit, { index, excess }: { index: number; excess: number }): number {
  let freed = 0
  for (let entry = index; entry < state.length; entry += 2) {
    freed += state[entry + 1]!
    if (freed >= excess) return state[entry]! + limit.windowMicros
  }
  return NEVER
}

/** Remembers every admitted call; exact, at the price of a state as long as the limit. */
export const slidingWindowLogAlgorithm: Algorithm<LogLimit> = {
  name: 'sliding-window-log',
  stateSize: (limit) => 2 * limit.limit,
  fixedSize: () => false,
  decide(state, limit, ask, verdict) {
    const now = notBefore(state, ask.now)
    const index = firstInView(state, limit, now)
    const used = usedFrom(state, index)
    verdict.delayMicros = 0
    verdict.mark = 0
    if (used + ask.cost <= limit.limit && limit.capacity > 0) {
      verdict.ruling = 'allowed'
      verdict.remaining = limit.limit - used - ask.cost
      verdict.retryAt = ask.now
      copyInView(state, limit, { index, verdict })
      if (ask.cost > 0) writeEntry(verdict, limit, { at: now, units: ask.cost })
      verdict.resetAt = verdict.freshAt = emptyAt(verdict.next, verdict.nextLength, { now, limit })
      return
    }
    const possible = ask.cost <= limit.capacity && limit.capacity > 0
    verdict.ruling = possible ? 'limit' : 'never'
    verdict.remaining = Math.max(0, limit.limit - used)
    verdict.retryAt = possible ? leavesAt(state, limit, { index, excess: used + ask.cost - limit.limit }) : NEVER
    verdict.resetAt = verdict.freshAt = emptyAt(state, state.length, { now, limit })
  },
  correct(state, limit, { now: asked, units, charge }, verdict) {
    const now = notBefore(state, asked)
    copyInView(state, limit, { index: firstInView(state, limit, now), verdict })
    let applied = units
    if (units > 0) {
      writeEntry(verdict, limit, { at: now, units })
    } else {
      const most = Math.min(-units, charge.cost)
      applied = -(charge.at === LATEST ? removeNewest(verdict, most) : removeUnits(verdict, { at: charge.at, most }))
    }
    verdict.freshAt = emptyAt(verdict.next, verdict.nextLength, { now, limit })
    return applied
  },
}

/** Takes up to `most` units off the entry of instant `at`, dropping it when empty. Returns how many. */
function removeUnits(verdict: Verdict, { at, most }: { at: number; most: number }): number {
  for (let entry = 0; entry < verdict.nextLength; entry += 2) {
    if (verdict.next[entry] !== at) continue
    const removed = Math.min(most, verdict.next[entry + 1]!)
    verdict.next[entry + 1] = verdict.next[entry + 1]! - removed
    if (verdict.next[entry + 1] === 0) {
      verdict.next.splice(entry, 2)
      verdict.next.push(0, 0)
      verdict.nextLength -= 2
    }
    return removed
  }
  return 0
}

/** Takes up to `most` units off the newest entries. Returns how many. */
function removeNewest(verdict: Verdict, most: number): number {
  let removed = 0
  while (removed < most && verdict.nextLength > 0) {
    const last = verdict.nextLength - 1
    const taken = Math.min(most - removed, verdict.next[last]!)
    verdict.next[last] = verdict.next[last]! - taken
    removed += taken
    if (verdict.next[last] === 0) verdict.nextLength -= 2
  }
  return removed
}
