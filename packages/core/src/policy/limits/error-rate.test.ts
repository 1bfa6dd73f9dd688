import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ErrorRateCut } from '../rule-set/rule-set.ts'
import { ErrorRateGuard } from './error-rate.ts'

const START_MS = Date.UTC(2030, 0, 1)
const CUT: ErrorRateCut = {
  cutAbove: 0.5,
  restoreBelow: 0.2,
  window: '10s',
  leastCalls: 10,
  step: 0.5,
  least: 0.1,
  hold: '5s',
}

/** A guard with a clock, counted in milliseconds from its start. */
class Scene {
  readonly guard: ErrorRateGuard
  nowMs = START_MS

  constructor(cut: Partial<ErrorRateCut> = {}) {
    this.guard = new ErrorRateGuard({ ...CUT, ...cut })
  }

  /** Calls at this instant, of which some fail, the failures last. */
  calls(count: number, failures: number): this {
    for (let call = 0; call < count; call++) this.guard.report(call >= count - failures, this.nowMs)
    return this
  }

  wait(ms: number): this {
    this.nowMs += ms
    return this
  }

  get factor(): number {
    return this.guard.factorAt(this.nowMs)
  }
}

describe('limits are cut', () => {
  it('when more than the share of calls fail, not at the share itself', () => {
    expect(new Scene().calls(10, 5).factor).toBe(1)
    expect(new Scene().calls(10, 6).factor).toBe(0.5)
  })

  it('by a share that is no binary fraction: 3 of 30 are not more than 0.1', () => {
    const cut = { cutAbove: 0.1, restoreBelow: 0.1 }
    expect(new Scene(cut).calls(30, 3).factor).toBe(1)
    expect(new Scene(cut).calls(30, 4).factor).toBe(0.5)
  })

  it('not for fewer calls than say something', () => {
    expect(new Scene().calls(9, 9).factor).toBe(1)
    expect(new Scene().calls(9, 9).calls(1, 0).factor).toBe(0.5)
  })

  it('only by failures of the window', () => {
    const scene = new Scene().calls(9, 9).wait(10_000).calls(9, 9)
    expect(scene.factor).toBe(1)
    expect(new Scene().calls(9, 9).wait(8_999).calls(1, 1).factor).toBe(0.5)
  })

  it('once for each hold, however many fail meanwhile', () => {
    const scene = new Scene().calls(1000, 1000)
    expect(scene.factor).toBe(0.5)
    expect(scene.wait(4_999).calls(1000, 1000).factor).toBe(0.5)
    expect(scene.wait(1).calls(1, 1).factor).toBe(0.25)
  })

  it('not twice by one failure: after a step the count restarts', () => {
    const scene = new Scene().calls(10, 10)
    expect(scene.wait(5_000).calls(9, 9).factor).toBe(0.5)
    expect(scene.calls(1, 1).factor).toBe(0.25)
  })

  it('never below the least', () => {
    const scene = new Scene()
    const factors = Array.from({ length: 6 }, () => scene.calls(10, 10).wait(5_000).factor)
    expect(factors).toEqual([0.5, 0.25, 0.125, 0.1, 0.1, 0.1])
  })

  it('also when successes leave the window and failures stay', () => {
    const scene = new Scene().calls(20, 0).wait(5_000).calls(10, 10)
    expect(scene.factor).toBe(1)
    expect(scene.wait(5_000).factor).toBe(0.5)
  })
})

describe('limits are given back', () => {
  it('step by step, once for each hold, while fewer than the share fail', () => {
    const scene = new Scene().calls(10, 10).wait(5_000).calls(10, 10)
    expect(scene.factor).toBe(0.25)
    expect(scene.wait(4_999).calls(10, 1).factor).toBe(0.25)
    expect(scene.wait(1).calls(1, 0).factor).toBe(0.5)
    expect(scene.wait(5_000).calls(10, 1).factor).toBe(1)
  })

  it('from the least back to where the steps were', () => {
    const scene = new Scene()
    for (let cut = 0; cut < 5; cut++) scene.calls(10, 10).wait(5_000)
    expect(scene.factor).toBe(0.1)
    expect(scene.calls(10, 0).wait(5_000).factor).toBe(0.125)
  })

  it('not at the share itself, nor anywhere between both', () => {
    const scene = new Scene().calls(10, 10).wait(5_000).calls(2, 2).calls(8, 0)
    expect(scene.factor).toBe(0.5)
    expect(scene.wait(5_000).calls(5, 5).factor).toBe(0.5)
    expect(scene.calls(5, 0).factor).toBe(0.5)
    expect(scene.wait(5_000).factor).toBe(0.5)
    expect(scene.calls(100, 0).factor).toBe(1)
  })

  it('after a whole window also for few calls, which must not hold a cut for ever', () => {
    const scene = new Scene().calls(10, 10)
    for (let call = 1; call < 5; call++) expect(scene.wait(2_000).calls(1, 0).factor).toBe(0.5)
    expect(scene.wait(2_000).calls(1, 0).factor).toBe(1)
  })

  it('not for few calls that fail', () => {
    const scene = new Scene().calls(10, 10)
    for (let second = 1; second < 60; second++) expect(scene.wait(2_000).calls(1, 1).factor).toBe(0.5)
  })

  it('one step for each window without a call, at any time', () => {
    const cutThreeTimes = (): Scene => {
      const scene = new Scene()
      for (let cut = 0; cut < 3; cut++) scene.calls(10, 10).wait(5_000)
      return scene.wait(-5_000)
    }
    expect(cutThreeTimes().wait(9_999).factor).toBe(0.125)
    expect(cutThreeTimes().wait(10_000).factor).toBe(0.25)
    expect(cutThreeTimes().wait(20_000).factor).toBe(0.5)
    expect(cutThreeTimes().wait(3_600_000).factor).toBe(1)
    const watched = cutThreeTimes()
    const factors = Array.from({ length: 31 }, () => watched.wait(1_000).factor)
    expect([factors[8], factors[9], factors[18], factors[19], factors[28], factors[29]]).toEqual([
      0.125, 0.25, 0.25, 0.5, 0.5, 1,
    ])
  })

  it('without calls at the very instant at which the window is over', () => {
    const scene = new Scene().wait(550).calls(10, 10)
    expect(scene.wait(9_999).factor).toBe(0.5)
    expect(scene.wait(1).factor).toBe(1)
  })

  it('without calls at the pace of the hold, where that is longer', () => {
    const scene = new Scene({ hold: '30s' }).calls(10, 10)
    expect(scene.wait(29_999).factor).toBe(0.5)
    expect(scene.wait(1).factor).toBe(1)
  })

  it('without calls even where no share is low enough', () => {
    const scene = new Scene({ restoreBelow: 0 }).calls(10, 10)
    expect(scene.wait(5_000).calls(10, 0).wait(9_999).factor).toBe(0.5)
    expect(scene.wait(1).factor).toBe(1)
  })
})

describe('time that goes back', () => {
  it('counts late reports with the newest, and steps no sooner', () => {
    const scene = new Scene().calls(5, 5).wait(-3_000).calls(5, 5)
    expect(scene.factor).toBe(0.5)
    expect(scene.wait(1_000).calls(10, 10).factor).toBe(0.5)
  })

  it('leaves the last call where it was', () => {
    const scene = new Scene({ leastCalls: 3, restoreBelow: 0.1 }).calls(3, 3).wait(8_000).calls(1, 1)
    scene.wait(-7_000).calls(1, 1)
    expect(scene.wait(16_999).factor).toBe(0.5)
    expect(scene.wait(1).factor).toBe(1)
  })
})

describe('property', () => {
  const settings = fc.record({
    cutAbove: fc.constantFrom(0.3, 0.5, 0.9),
    restoreBelow: fc.constantFrom(0, 0.1, 0.3),
    window: fc.constantFrom(1_000, 10_000, 60_000),
    leastCalls: fc.integer({ min: 1, max: 20 }),
    step: fc.constantFrom(0.5, 0.7, 0.9),
    least: fc.constantFrom(0.05, 0.2, 0.5),
    hold: fc.constantFrom(100, 5_000, 120_000),
  })
  const events = fc.array(
    fc.record({ waitMs: fc.integer({ min: 0, max: 15_000 }), failed: fc.boolean(), asks: fc.boolean() }),
    { maxLength: 200 },
  )

  it('a share between both bounds never changes the factor', () => {
    const periods = fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 100 })
    fc.assert(
      fc.property(fc.boolean(), periods, (isCut, waits) => {
        // Of any 10 calls in a row 3 fail, so of any 10 or more in a window 3/13 to 6/13 do.
        const scene = new Scene({ hold: 100, restoreBelow: 0.2, leastCalls: 10 })
        if (isCut) scene.calls(10, 10).wait(1_000)
        const before = scene.factor
        for (const waitMs of waits) {
          for (let call = 0; call < 10; call++) scene.calls(1, call % 3 === 1 ? 1 : 0)
          expect(scene.factor).toBe(before)
          scene.wait(waitMs)
        }
      }),
    )
  })

  it('the factor is a power of the step or the least, and neither falls nor rises faster than the hold allows', () => {
    fc.assert(
      fc.property(settings, events, (cut, sequence) => {
        const levels = levelsOf(cut)
        let level = 0
        let cutMs = Number.NEGATIVE_INFINITY
        let restored = 0
        for (const { nowMs, factor } of observe(new Scene(cut), sequence)) {
          const cuts = levels.indexOf(factor) - level
          level += cuts
          restored = cuts > 0 ? 0 : restored - cuts
          expect(level).toBeGreaterThanOrEqual(0)
          expect(cuts).toBeLessThanOrEqual(1)
          expect(nowMs - cutMs).toBeGreaterThanOrEqual((cuts > 0 ? 1 : restored) * cut.hold)
          if (cuts > 0) cutMs = nowMs
        }
      }),
    )
  })

  it('the first cut comes with the very call that makes the share too large', () => {
    fc.assert(
      fc.property(events, (sequence) => {
        const scene = new Scene({ leastCalls: 5 })
        const calls: { atMs: number; failed: boolean }[] = []
        for (const { waitMs, failed } of sequence) {
          scene.wait(waitMs % 3_000)
          scene.calls(1, failed ? 1 : 0)
          calls.push({ atMs: scene.nowMs, failed })
          // The window moves on by tenths: it holds the second that has begun, and the nine before.
          const fromMs = Math.floor(scene.nowMs / 1_000) * 1_000 - 9_000
          const counted = calls.filter(({ atMs }) => atMs >= fromMs)
          const failures = counted.filter((call) => call.failed).length
          const isTooMany = counted.length >= 5 && failures > counted.length / 2
          expect(scene.factor).toBe(isTooMany ? 0.5 : 1)
          if (isTooMany) return
        }
      }),
    )
  })
})

/** The factor after each of the events, which are calls or questions alone. */
function observe(
  scene: Scene,
  sequence: readonly { waitMs: number; failed: boolean; asks: boolean }[],
): { nowMs: number; factor: number }[] {
  return sequence.map(({ waitMs, failed, asks }) => {
    scene.wait(waitMs)
    if (!asks) scene.calls(1, failed ? 1 : 0)
    return { nowMs: scene.nowMs, factor: scene.factor }
  })
}

/** Every factor there can be, from no cut to the deepest. */
function levelsOf({ step, least }: Pick<ErrorRateCut, 'step' | 'least'>): number[] {
  const levels = [1]
  while (levels.at(-1)! > least) levels.push(Math.max(least, step ** levels.length))
  return levels
}
