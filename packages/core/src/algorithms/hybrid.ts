import type { Limit, OverlayLimit } from '../rule/limit.ts'
import type { Algorithm, Ask, State, Verdict } from './algorithm.ts'
import { createVerdict, LATEST, NEVER } from './algorithm.ts'
import { tokenBucketAlgorithm } from './bucket.ts'
import { fixedWindowAlgorithm } from './fixed-window.ts'
import { slidingWindowCounterAlgorithm } from './sliding-window-counter.ts'
import { slidingWindowLogAlgorithm } from './sliding-window-log.ts'
import { slidingWindowSegmentsAlgorithm } from './sliding-window-segments.ts'

// State: [burst level, burst at, ...state of the base window]; burst at is 0 while the burst has not been touched.
const BURST_SIZE = 2

const BASES: { readonly [A in OverlayLimit['base']['algorithm']]: Algorithm<Extract<Limit, { algorithm: A }>> } = {
  'fixed-window': fixedWindowAlgorithm,
  'sliding-window-counter': slidingWindowCounterAlgorithm,
  'sliding-window-log': slidingWindowLogAlgorithm,
  'sliding-window-segments': slidingWindowSegmentsAlgorithm,
}

function baseOf(limit: OverlayLimit): Algorithm<OverlayLimit['base']> {
  return BASES[limit.base.algorithm] as Algorithm<OverlayLimit['base']>
}

interface Parts {
  readonly base: State
  readonly burst: State
}

function partsOf(state: State): Parts {
  if (state.length === 0) return { base: [], burst: [] }
  return { base: state.slice(BURST_SIZE), burst: state[1] === 0 ? [] : state.slice(0, BURST_SIZE) }
}

interface Split {
  readonly base: Verdict
  readonly burst: Verdict
  readonly fromBurst: number
}

/** Lets the window pay what it can and the burst the rest. Both verdicts are allowances when the whole cost fits. */
function split(parts: Parts, limit: OverlayLimit, ask: Readonly<Ask>): Split {
  const base = createVerdict()
  const burst = createVerdict()
  baseOf(limit).decide(parts.base, limit.base, ask, base)
  const fromBurst = base.ruling === 'allowed' ? 0 : ask.cost - base.remaining
  if (base.ruling !== 'allowed') payWhatIsLeft(parts.base, limit, { ask, base })
  tokenBucketAlgorithm.decide(parts.burst, limit.burst, { ...ask, cost: fromBurst }, burst)
  // What asks nothing of the burst passes it, whatever state it is in: overdrawn, or of capacity 0.
  if (fromBurst === 0 && burst.ruling !== 'allowed') leaveAsIs(burst, parts.burst)
  if (fromBurst > 0 && !ask.entitled) burst.ruling = 'limit'
  return { base, burst, fromBurst }
}

/** Takes all that the window has left. An overdrawn one has nothing, which does not keep the burst from paying. */
function payWhatIsLeft(state: State, limit: OverlayLimit, { ask, base }: { ask: Readonly<Ask>; base: Verdict }): void {
  baseOf(limit).decide(state, limit.base, { ...ask, cost: base.remaining }, base)
  if (base.ruling !== 'allowed') leaveAsIs(base, state)
}

/** Makes a denial of nothing an allowance of nothing. */
function leaveAsIs(verdict: Verdict, state: State): void {
  verdict.ruling = 'allowed'
  verdict.next = [...state]
  verdict.nextLength = state.length
}

function fitsAt(parts: Parts, limit: OverlayLimit, ask: Readonly<Ask>): boolean {
  const { base, burst } = split(parts, limit, ask)
  return base.ruling === 'allowed' && burst.ruling === 'allowed'
}

/** The first instant at which window and burst together can pay. */
function retryAt(parts: Parts, limit: OverlayLimit, ask: Readonly<Ask>): number {
  if (!ask.entitled || limit.burst.capacity === 0) return baseRetryAt(parts, limit, ask)
  if (ask.cost > limit.capacity) return NEVER
  return limit.base.algorithm === 'fixed-window' ? retryOverWindow(parts, limit, ask) : searchRetry(parts, limit, ask)
}

/** Over a fixed window: what the window has left stays the same until it ends, and then all of it is back. */
function retryOverWindow(parts: Parts, limit: OverlayLimit, ask: Readonly<Ask>): number {
  const base = createVerdict()
  baseOf(limit).decide(parts.base, limit.base, ask, base)
  const inThisWindow = burstRetryAt(parts, limit, { ...ask, cost: ask.cost - base.remaining })
  if (inThisWindow < base.resetAt) return inThisWindow
  const beyondTheNext = ask.cost - limit.base.limit
  if (beyondTheNext <= 0) return base.resetAt
  return Math.max(base.resetAt, burstRetryAt(parts, limit, { ...ask, cost: beyondTheNext }))
}

function burstRetryAt(parts: Parts, limit: OverlayLimit, ask: Readonly<Ask>): number {
  const burst = createVerdict()
  tokenBucketAlgorithm.decide(parts.burst, limit.burst, ask, burst)
  return burst.retryAt
}

/** Over a window that slides: window and burst only grow while nothing is taken, so the instant is searched. */
function searchRetry(parts: Parts, limit: OverlayLimit, ask: Readonly<Ask>): number {
  const { base, burst } = split(parts, limit, { ...ask, cost: 0 })
  let low = ask.now
  const allBackAt = Math.max(base.freshAt, burst.freshAt, ask.now + 1)
  // Instants are searched as far as they are whole numbers; a burst that takes longer to refill says when it is full.
  let high = Math.min(Number.MAX_SAFE_INTEGER, allBackAt)
  if (!fitsAt(parts, limit, { ...ask, now: high })) return allBackAt > high ? allBackAt : NEVER
  while (high - low > 1) {
    const middle = low + Math.floor((high - low) / 2)
    if (fitsAt(parts, limit, { ...ask, now: middle })) high = middle
    else low = middle
  }
  return high
}

function baseRetryAt(parts: Parts, limit: OverlayLimit, ask: Readonly<Ask>): number {
  const verdict = createVerdict()
  baseOf(limit).decide(parts.base, limit.base, ask, verdict)
  return verdict.retryAt
}

function write(verdict: Verdict, base: Verdict, burst: Verdict): void {
  verdict.next[0] = burst.nextLength > 0 ? burst.next[0]! : 0
  verdict.next[1] = burst.nextLength > 0 ? burst.next[1]! : 0
  for (let index = 0; index < base.nextLength; index++) verdict.next[BURST_SIZE + index] = base.next[index]!
  verdict.nextLength = BURST_SIZE + base.nextLength
}

/** A window for all, and a token bucket that pays what exceeds it for those entitled. */
export const hybridAlgorithm: Algorithm<OverlayLimit> = {
  name: 'hybrid',
  stateSize: (limit) => BURST_SIZE + baseOf(limit).stateSize(limit.base),
  fixedSize: (limit) => baseOf(limit).fixedSize(limit.base),
  decide(state, limit, ask, verdict) {
    const parts = partsOf(state)
    const { base, burst, fromBurst } = split(parts, limit, ask)
    const allowed = base.ruling === 'allowed' && burst.ruling === 'allowed' && limit.capacity > 0
    // A denial says how things stand, not how they would stand after the part that could have been paid.
    const standing = allowed ? { base, burst } : split(parts, limit, { ...ask, cost: 0 })
    const left = standing.base.remaining + (ask.entitled ? standing.burst.remaining : 0)
    verdict.delayMicros = 0
    verdict.mark = ask.cost - fromBurst
    verdict.remaining = limit.capacity > 0 ? left : 0
    verdict.resetAt = Math.max(standing.base.resetAt, standing.burst.freshAt)
    verdict.freshAt = Math.max(standing.base.freshAt, standing.burst.freshAt)
    if (allowed) {
      verdict.ruling = 'allowed'
      verdict.retryAt = ask.now
      write(verdict, base, burst)
      return
    }
    verdict.retryAt = limit.capacity > 0 ? retryAt(parts, limit, ask) : NEVER
    verdict.ruling = verdict.retryAt === NEVER ? 'never' : 'limit'
  },
  correct(state, limit, { now, units, charge }, verdict) {
    const parts = partsOf(state)
    const base = createVerdict()
    const burst = createVerdict()
    // The mark is what the window paid. The burst is dearer to the caller, so it is given back first; what is left of a
    // charge after that is the window's. Without a charge it is the other way round: what was taken without asking was
    // taken of the window.
    const isLatest = charge.at === LATEST
    const fromBurst = isLatest ? 0 : Math.max(0, charge.cost - charge.mark)
    const ofCharge = units < 0 ? -Math.min(-units, fromBurst) : 0
    const baseCharge = { ...charge, cost: charge.cost - fromBurst, mark: 0 }
    const baseApplied =
      baseOf(limit).correct(parts.base, limit.base, { now, units: units - ofCharge, charge: baseCharge }, base) ?? 0
    const toBurst = isLatest ? units - baseApplied : ofCharge
    const burstCharge = { ...charge, cost: isLatest ? charge.cost : fromBurst, mark: 0 }
    const burstApplied =
      tokenBucketAlgorithm.correct(parts.burst, limit.burst, { now, units: toBurst, charge: burstCharge }, burst) ?? 0
    write(verdict, base, burst)
    verdict.freshAt = Math.max(base.freshAt, burst.freshAt)
    return burstApplied + baseApplied
  },
}
