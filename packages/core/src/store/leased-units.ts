import type { Ask, State, Verdict } from '../algorithms/algorithm.ts'
import { algorithmOf, NEVER } from '../algorithms/algorithm.ts'
import { SluiceError } from '../errors.ts'
import type { Limit } from '../rule/limit.ts'
import type { Batch } from './store.ts'

/** Leased units of a limit: counted, and not yet charged. */
export interface LeasedUnits {
  readonly units: number
  /** When the first of the leases ends (microseconds since 1970); meaningless without units. */
  readonly soonestEnd: number
}

/**
 * Decides as if the leased units had been charged just now, the latest possible time. So a lease may be spent at any
 * instant until it ends, and the admitted units never exceed the limit. If allowed, `verdict.next` has the state after
 * the charge itself; leased units stay recorded separately.
 *
 * A denial because of leases reports when the call would fit if they were used now; if that is never, when the first
 * lease ends.
 */
export function decideBesideLeases(
  state: State,
  limit: Limit,
  { ask, leased }: { readonly ask: Readonly<Ask>; readonly leased: LeasedUnits },
  verdict: Verdict,
): void {
  const algorithm = algorithmOf(limit)
  if (leased.units === 0) {
    algorithm.decide(state, limit, ask, verdict)
    return
  }
  algorithm.decide(state, limit, { ...ask, cost: ask.cost + leased.units }, verdict)
  if (verdict.ruling === 'allowed') {
    const { remaining } = verdict
    algorithm.decide(state, limit, ask, verdict)
    verdict.remaining = remaining
    return
  }
  const possible = ask.cost <= limit.capacity && limit.capacity > 0
  verdict.remaining = Math.max(0, verdict.remaining - leased.units)
  verdict.ruling = possible ? 'limit' : 'never'
  if (!possible) verdict.retryAt = NEVER
  else if (verdict.retryAt === NEVER) verdict.retryAt = leased.soonestEnd
}

/** Throws `SLUICE_UNSUPPORTED` for a batch that requests a lease from a store without leases. */
export function rejectLease(batch: Batch, store: string): void {
  if (batch.leaseMicros === 0) return
  throw new SluiceError('SLUICE_UNSUPPORTED', {
    problem: `${store} has no leases`,
    expected: 'a store shared by several nodes',
    action: 'Leave leases out: a local store answers at once.',
  })
}
