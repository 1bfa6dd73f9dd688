import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Watch } from './alert-record.ts'
import { nextWatch } from './alert-record.ts'

const RULE = { forMs: 300_000, resolveAfterMs: 60_000 }
const START: Watch = { state: 'ok', since: 0 }

/** At which instant, whether the condition holds, and the state that follows. */
type Step = readonly [atMs: number, holds: boolean, state: Watch['state']]

function play(steps: readonly Step[], rule = RULE): Watch {
  let watch = START
  for (const [nowMs, holds, state] of steps) {
    watch = nextWatch(watch, { holds, nowMs }, rule)
    expect({ nowMs, state: watch.state }).toEqual({ nowMs, state })
  }
  return watch
}

describe('a watch', () => {
  it('stays ok while nothing holds, since the same instant', () => {
    expect(
      play([
        [1000, false, 'ok'],
        [999_999, false, 'ok'],
      ]),
    ).toEqual(START)
  })

  it('fires at the instant the condition has held for long enough, and not a millisecond before', () => {
    const watch = play([
      [1000, true, 'pending'],
      [300_999, true, 'pending'],
      [301_000, true, 'firing'],
    ])
    expect(watch).toEqual({ state: 'firing', since: 301_000 })
  })

  it('starts over when the condition was gone in between', () => {
    play([
      [1000, true, 'pending'],
      [300_000, false, 'ok'],
      [300_500, true, 'pending'],
      [600_499, true, 'pending'],
      [600_500, true, 'firing'],
    ])
  })

  it('fires at once when nothing is to be waited for', () => {
    expect(play([[1000, true, 'firing']], { ...RULE, forMs: 0 })).toEqual({ state: 'firing', since: 1000 })
  })

  it('is resolved at the instant the condition has been gone for long enough, and not a millisecond before', () => {
    const watch = play(
      [
        [1000, true, 'firing'],
        [5000, false, 'firing'],
        [64_999, false, 'firing'],
        [65_000, false, 'resolved'],
      ],
      { ...RULE, forMs: 0 },
    )
    expect(watch).toEqual({ state: 'resolved', since: 65_000 })
  })

  it('goes on firing when the condition comes back in time, and waits as long again', () => {
    const watch = play(
      [
        [1000, true, 'firing'],
        [5000, false, 'firing'],
        [64_999, true, 'firing'],
        [65_000, false, 'firing'],
        [124_999, false, 'firing'],
        [125_000, false, 'resolved'],
      ],
      { ...RULE, forMs: 0 },
    )
    expect(watch).toEqual({ state: 'resolved', since: 125_000 })
  })

  it('is resolved at once when nothing is to be waited for', () => {
    play(
      [
        [1000, true, 'firing'],
        [1001, false, 'resolved'],
      ],
      { forMs: 0, resolveAfterMs: 0 },
    )
  })

  it('begins again after it was resolved', () => {
    play(
      [
        [0, true, 'pending'],
        [10, true, 'firing'],
        [20, false, 'resolved'],
        [25, false, 'resolved'],
        [30, true, 'pending'],
        [39, true, 'pending'],
        [40, true, 'firing'],
      ],
      { forMs: 10, resolveAfterMs: 0 },
    )
  })

  it('waits no longer than once more when the clock goes back', () => {
    const back = play([
      [9_000_000, true, 'pending'],
      [1000, true, 'pending'],
      [300_999, true, 'pending'],
      [301_000, true, 'firing'],
      [302_000, false, 'firing'],
      [500, false, 'firing'],
      [60_499, false, 'firing'],
      [60_500, false, 'resolved'],
    ])
    expect(back.since).toBe(60_500)
  })

  it('fires only after forMs without a break, and resolves only after resolveAfterMs (property)', () => {
    const looks = fc.array(fc.record({ holds: fc.boolean(), passMs: fc.integer({ min: 1, max: 40 }) }), {
      maxLength: 80,
    })
    fc.assert(
      fc.property(looks, fc.nat(60), fc.nat(60), (sights, forMs, resolveAfterMs) => {
        let watch = START
        let nowMs = 0
        let runBegan = 0
        let runHolds = false
        for (const { holds, passMs } of sights) {
          nowMs += passMs
          if (holds !== runHolds) {
            runHolds = holds
            runBegan = nowMs
          }
          const before = watch.state === 'firing'
          watch = nextWatch(watch, { holds, nowMs }, { forMs, resolveAfterMs })
          const after = watch.state === 'firing'
          const isDue = nowMs - runBegan >= (holds ? forMs : resolveAfterMs)
          // Changes exactly when the run of equal sights that lasts now is long enough.
          expect(after).toBe(isDue ? holds : before)
        }
      }),
    )
  })
})
