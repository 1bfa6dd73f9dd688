import type { Ask, State, Verdict } from '../algorithms/algorithm.ts'
import { algorithmOf, createVerdict, NEVER } from '../algorithms/algorithm.ts'
import type { Limit } from '../rule/limit.ts'
import type { Batch, Item } from './store.ts'

/**
 * Decides a batch over states that do not change meanwhile, and writes the results into it: the common part of every
 * store that runs the algorithms itself. `batch.now` and every `blockedUntil` must be set. If `batch.allowed`, the
 * store charges by storing each verdict's `next`.
 */
export function decideBatch(batch: Batch, stateOf: (index: number) => State): void {
  let allowed = decideItems(batch, stateOf)
  if (!allowed && batch.partial) {
    lowerToWhatIsLeft(batch)
    allowed = decideItems(batch, stateOf)
  }
  batch.allowed = allowed
}

function decideItems(batch: Batch, stateOf: (index: number) => State): boolean {
  const ask: Ask = { now: batch.now, cost: 0, holder: batch.holder, entitled: batch.entitled }
  let allowed = true
  for (let index = 0; index < batch.items.length; index++) {
    const item = batch.items[index]!
    ask.cost = item.cost
    algorithmOf(item.limit).decide(stateOf(index), item.limit, ask, item.verdict)
    if (item.verdict.ruling !== 'allowed' || item.blockedUntil > batch.now) allowed = false
  }
  return allowed
}

/**
 * Lowers every cost to the most that all limits can give. If that is nothing, to one unit: denied too, but with the
 * time at which a unit is available.
 */
function lowerToWhatIsLeft(batch: Batch): void {
  let granted = NEVER
  for (const { verdict, cost } of batch.items) {
    granted = Math.min(granted, verdict.ruling === 'allowed' ? cost : verdict.remaining)
  }
  for (const item of batch.items) item.cost = Math.min(item.cost, Math.max(1, granted))
}

/**
 * The index of the last item before `index` on the same overflow counter, or -1. Keys without space of their own share
 * one counter per limit, so their charges must be applied in sequence.
 */
export function overflowBefore(items: readonly Item[], homeless: ReadonlySet<number>, index: number): number {
  for (let before = index - 1; before >= 0; before--) {
    if (homeless.has(before) && items[before]!.limit.id === items[index]!.limit.id) return before
  }
  return -1
}

/** True if no later item uses the same overflow counter, so this item's state is the one to store. */
export function isLastOverflow(items: readonly Item[], homeless: ReadonlySet<number>, index: number): boolean {
  for (let after = index + 1; after < items.length; after++) {
    if (homeless.has(after) && items[after]!.limit.id === items[index]!.limit.id) return false
  }
  return true
}

/** The state after a verdict: the new one if it allows, else the previous one. */
export function stateAfter(verdict: Verdict, before: State): State {
  return verdict.ruling === 'allowed' ? verdict.next.slice(0, verdict.nextLength) : before
}

/** Units left once the state of a verdict is stored. Determines how well its key is protected from eviction. */
export function remainingAfter(limit: Limit, verdict: Verdict, now: number): number {
  const after = createVerdict()
  const state = verdict.next.slice(0, verdict.nextLength)
  algorithmOf(limit).decide(state, limit, { now, cost: 0, holder: 0, entitled: true }, after)
  return after.remaining
}

/** How much of its limit a key uses, from 0 to 255; 255: nothing is left. */
export function useByte(capacity: number, remaining: number): number {
  return remaining <= 0 ? 255 : Math.max(0, Math.floor(254 * (1 - remaining / capacity)))
}

const LATEST_EXPIRY_SECONDS = 0xffff_ffff

/** Precise enough for expiry, which only decides when to forget; rounded up by a whole second. */
const SECONDS_PER_MICRO = 1e-6

/** When a store may forget a state, in seconds since 1970; never 0, which means "empty". */
export function expirySecondsOf(verdict: Verdict): number {
  return Math.min(LATEST_EXPIRY_SECONDS, Math.ceil(verdict.freshAt * SECONDS_PER_MICRO) + 1)
}
