import type { Limit, OverlayLimit } from '../limit.ts'
import type { Algorithm, Ask, State, Verdict } from './algorithm.ts'
import { createVerdict, NEVER } from './algorithm.ts'
import { fixedWindowAlgorithm } from './fixed-window.ts'
import { tokenBucketAlgorithm } from './meter.ts'
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
  if (fromBurst > 0) baseOf(limit).decide(parts.base, limit.base, { ...ask, cost: base.remaining }, base)
  tokenBucketAlgorithm.decide(parts.burst, limit.burst, { ...ask, cost: fromBurst }, burst)
  if (fromBurst > 0 && !ask.entitled) burst.ruling = 'limit'
  return { base, burst, fromBurst }
}

function fitsAt(parts: Parts, limit: OverlayLimit, ask: Readonly<Ask>): boolean {
  const { base, burst } = split(parts, limit, ask)
  return base.ruling === 'allowed' && burst.ruling === 'allowed'
}

/** The first instant at which window and burst together can pay. Both only grow while nothing is taken, so it is searched. */
function retryAt(parts: Parts, limit: OverlayLimit, ask: Readonly<Ask>): number {
  if (!ask.entitled || limit.burst.capacity === 0) return baseRetryAt(parts, limit, ask)
  if (ask.cost > limit.capacity) return NEVER
  const { base, burst } = split(parts, limit, { ...ask, cost: 0 })
  let low = ask.now
  let high = Math.max(base.freshAt, burst.freshAt, ask.now + 1)
  if (!fitsAt(parts, limit, { ...ask, now: high })) return NEVER
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
    const burstLeft = ask.entitled ? burst.remaining : 0
    verdict.delayMicros = 0
    verdict.mark = fromBurst
    verdict.resetAt = base.resetAt
    verdict.freshAt = Math.max(base.freshAt, burst.freshAt)
    if (base.ruling === 'allowed' && burst.ruling === 'allowed' && limit.capacity > 0) {
      verdict.ruling = 'allowed'
      verdict.remaining = base.remaining + burstLeft
      verdict.retryAt = ask.now
      write(verdict, base, burst)
      return
    }
    const free = split(parts, limit, { ...ask, cost: 0 })
    verdict.remaining = free.base.remaining + (ask.entitled ? free.burst.remaining : 0)
    verdict.retryAt = limit.capacity > 0 ? retryAt(parts, limit, ask) : NEVER
    verdict.ruling = verdict.retryAt === NEVER ? 'never' : 'limit'
  },
  correct(state, limit, { now, units, charge }, verdict) {
    const parts = partsOf(state)
    const base = createVerdict()
    const burst = createVerdict()
    // The burst is dearer to the caller than the window, so it is given back first.
    const toBurst = units < 0 ? -Math.min(-units, charge.mark) : 0
    const burstCharge = { ...charge, cost: charge.mark, mark: 0 }
    const baseCharge = { ...charge, cost: charge.cost - charge.mark, mark: 0 }
    const burstApplied = tokenBucketAlgorithm.correct(
      parts.burst,
      limit.burst,
      { now, units: toBurst, charge: burstCharge },
      burst,
    )
    const baseApplied = baseOf(limit).correct(
      parts.base,
      limit.base,
      { now, units: units - toBurst, charge: baseCharge },
      base,
    )
    write(verdict, base, burst)
    verdict.freshAt = Math.max(base.freshAt, burst.freshAt)
    return (burstApplied ?? 0) + (baseApplied ?? 0)
  },
}
