import type { ConcurrencyLimit } from '../rule/limit.ts'
import type { Algorithm, State, Verdict } from './algorithm.ts'
import { NEVER } from './algorithm.ts'

// State: [holder, slots, expiresAt, ...] — one triple for each lease, soonest to expire first. A lease that is not
// renewed ends at expiresAt, so the slots of a holder that died come back by themselves.
const LEASE_SIZE = 3

function slotsHeld(state: State, now: number): number {
  let held = 0
  for (let lease = 0; lease < state.length; lease += LEASE_SIZE) {
    if (state[lease + 2]! > now) held += state[lease + 1]!
  }
  return held
}

/** Copies the live leases other than `holder`'s. */
function copyLive(state: State, { now, holder }: { now: number; holder: number }, verdict: Verdict): void {
  let length = 0
  for (let lease = 0; lease < state.length; lease += LEASE_SIZE) {
    if (state[lease + 2]! <= now || state[lease] === holder) continue
    for (let part = 0; part < LEASE_SIZE; part++) verdict.next[length + part] = state[lease + part]!
    length += LEASE_SIZE
  }
  verdict.nextLength = length
}

/** Inserts a lease, keeping the order by expiry. */
function insertLease(verdict: Verdict, lease: { holder: number; slots: number; expiresAt: number }): void {
  let place = verdict.nextLength
  while (place > 0 && verdict.next[place - 1]! > lease.expiresAt) {
    for (let part = 0; part < LEASE_SIZE; part++) verdict.next[place + part] = verdict.next[place - LEASE_SIZE + part]!
    place -= LEASE_SIZE
  }
  verdict.next[place] = lease.holder
  verdict.next[place + 1] = lease.slots
  verdict.next[place + 2] = lease.expiresAt
  verdict.nextLength += LEASE_SIZE
}

function lastExpiry(values: readonly number[], length: number, now: number): number {
  return length > 0 ? Math.max(now, values[length - 1]!) : now
}

/** When enough leases have run out for `excess` slots to be free. */
function freeAt(state: State, now: number, excess: number): number {
  let freed = 0
  for (let lease = 0; lease < state.length; lease += LEASE_SIZE) {
    if (state[lease + 2]! <= now) continue
    freed += state[lease + 1]!
    if (freed >= excess) return state[lease + 2]!
  }
  return NEVER
}

/** Slots held under a lease: at most `limit` at once. A renewal is a correction by 0 units. */
export const concurrencyAlgorithm: Algorithm<ConcurrencyLimit> = {
  name: 'concurrency',
  stateSize: (limit) => LEASE_SIZE * limit.limit,
  fixedSize: () => false,
  decide(state, limit, ask, verdict) {
    const held = slotsHeld(state, ask.now)
    verdict.delayMicros = 0
    verdict.mark = 0
    if (held + ask.cost <= limit.limit && limit.capacity > 0) {
      verdict.ruling = 'allowed'
      verdict.remaining = limit.limit - held - ask.cost
      verdict.retryAt = ask.now
      copyLive(state, { now: ask.now, holder: -1 }, verdict)
      if (ask.cost > 0) {
        insertLease(verdict, { holder: ask.holder, slots: ask.cost, expiresAt: ask.now + limit.leaseMicros })
      }
      verdict.resetAt = verdict.freshAt = lastExpiry(verdict.next, verdict.nextLength, ask.now)
      return
    }
    const possible = ask.cost <= limit.capacity && limit.capacity > 0
    verdict.ruling = possible ? 'limit' : 'never'
    verdict.remaining = Math.max(0, limit.limit - held)
    verdict.retryAt = possible ? freeAt(state, ask.now, held + ask.cost - limit.limit) : NEVER
    verdict.resetAt = verdict.freshAt = lastExpiry(state, state.length, ask.now)
  },
  correct(state, limit, { now, units, charge }, verdict) {
    let slots = 0
    for (let lease = 0; lease < state.length; lease += LEASE_SIZE) {
      if (state[lease] === charge.holder && state[lease + 2]! > now) slots = state[lease + 1]!
    }
    copyLive(state, { now, holder: charge.holder }, verdict)
    const kept = slots === 0 ? 0 : Math.max(0, slots + units)
    if (kept > 0) insertLease(verdict, { holder: charge.holder, slots: kept, expiresAt: now + limit.leaseMicros })
    verdict.freshAt = lastExpiry(verdict.next, verdict.nextLength, now)
    return slots === 0 ? undefined : kept - slots
  },
}
