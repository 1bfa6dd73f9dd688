import { FakeClock } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Limit } from '../../rule/limit.ts'
import { createBatch, createItem } from '../../store/batch.ts'
import { memoryStore } from '../../store/memory/memory-store.ts'
import type { Penalty } from '../rule-set/rule-set.ts'
import type { Block } from './live-entry.ts'
import { nextBlock, penaltyLimits } from './penalty.ts'

const NOW_MS = Date.UTC(2030, 0, 1)
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const PENALTY: Penalty = { after: 3, within: '1m', block: '5m' }

function blockAfter(penalty: Partial<Penalty>, previous: Block | undefined, nowMs = NOW_MS): Block {
  return nextBlock({ penalty: { ...PENALTY, ...penalty }, previous, nowMs, dimension: 'ip', entity: 'a', rule: 'r' })
}

/** Denials at these instants (milliseconds from the start): the places of those that are too many. */
function tooMany(limit: Limit, instantsMs: readonly number[]): number[] {
  const clock = new FakeClock()
  const store = memoryStore({ clock })
  const startMicros = clock.nowMicros()
  const places: number[] = []
  for (const [place, instantMs] of instantsMs.entries()) {
    clock.setMicros(startMicros + instantMs * 1000)
    const batch = createBatch([createItem(limit, 'a', 1)])
    store.decide(batch)
    if (batch.allowed && batch.items[0]!.verdict.remaining > 0) continue
    places.push(place)
    store.reset([limit], 'a')
  }
  return places
}

describe('the counter of denials', () => {
  it('finds the third of three in a window, and not three in two windows', () => {
    const limit = penaltyLimits('login', PENALTY).denials
    expect(tooMany(limit, [0, 1, 2])).toEqual([2])
    expect(tooMany(limit, [0, 30_000, 59_999])).toEqual([2])
    expect(tooMany(limit, [30_000, 60_000, 89_999])).toEqual([])
    expect(tooMany(limit, [30_000, 60_000, 89_999, 90_000])).toEqual([3])
    expect(tooMany(limit, [0, 30_000, 60_000, 90_000, 120_000])).toEqual([])
  })

  it('of one denial finds each', () => {
    expect(tooMany(penaltyLimits('login', { ...PENALTY, after: 1 }).denials, [0, 1])).toEqual([0, 1])
  })

  it('takes new denials for each block', () => {
    expect(tooMany(penaltyLimits('login', PENALTY).denials, [0, 1, 2, 3, 4, 5, 6])).toEqual([2, 5])
  })

  it('takes as little of a store for many denials as for few', () => {
    expect(penaltyLimits('login', { ...PENALTY, after: 100_000 }).denials.stateSize).toBeLessThanOrEqual(4)
  })

  it('blocks no caller while the store is unavailable', () => {
    expect(penaltyLimits('login', PENALTY).denials.failureMode).toBe('open')
  })

  it('property: blocks no caller with fewer denials within the time, and every caller with twice as many', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 40_000 }), { maxLength: 60 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), gaps, (after, waits) => {
        let nowMs = 0
        const instants = waits.map((waitMs) => {
          nowMs += waitMs
          return nowMs
        })
        const blocked = new Set(tooMany(penaltyLimits('login', { ...PENALTY, after }).denials, instants))
        let sinceBlock: number[] = []
        for (const [place, instantMs] of instants.entries()) {
          sinceBlock = [...sinceBlock.filter((ms) => ms > instantMs - MINUTE_MS), instantMs]
          if (blocked.has(place)) expect(sinceBlock.length).toBeGreaterThanOrEqual(after)
          else expect(sinceBlock.length).toBeLessThan(2 * after)
          if (blocked.has(place)) sinceBlock = []
        }
      }),
    )
  })
})

describe('the right to block a caller', () => {
  it.each<[string, Penalty['block'], number]>([
    ['a second', '5m', 1000],
    ['a block, if that is shorter', 20, 20],
  ])('is granted once in %s', (_name, block, heldMs) => {
    const { claim } = penaltyLimits('login', { ...PENALTY, block })
    const instants = [0, 1, heldMs - 1, heldMs, heldMs + 1, 2 * heldMs]
    const clock = new FakeClock()
    const store = memoryStore({ clock })
    const startMicros = clock.nowMicros()
    const granted = instants.filter((instantMs) => {
      clock.setMicros(startMicros + instantMs * 1000)
      const batch = createBatch([createItem(claim, 'a', 1)])
      store.decide(batch)
      return batch.allowed
    })
    expect(granted).toEqual([0, heldMs, 2 * heldMs])
  })

  it('ends with a block of the counter', () => {
    const { denials, claim } = penaltyLimits('login', PENALTY)
    expect(claim.rule).toBe(denials.rule)
    expect(claim.id).not.toBe(denials.id)
    expect(claim.failureMode).toBe('open')
  })
})

describe('the name of the counter of denials', () => {
  it.each<[string]>([['login'], ['*'], ['/orders/*@user'], ['x'.repeat(120)]])('is that of the rule: %s', (name) => {
    expect(penaltyLimits(name, PENALTY).denials.rule).toBe(`penalty:${name}`)
  })

  it('of long rules is cut, still different for different rules, and never that of another', () => {
    const long = 'x'.repeat(128)
    const names = [long, `y${long.slice(1)}`, `${long.slice(0, 127)}y`, long.slice(0, 121)]
    const made = names.map((name) => penaltyLimits(name, PENALTY).denials.rule)
    expect(new Set(made).size).toBe(4)
    for (const name of made) {
      expect(name).toHaveLength(128)
      expect(name).toMatch(/^penalty::y?x+:[0-9a-f]{16}$/)
    }
    expect(penaltyLimits(long, PENALTY).denials.rule).toBe(made[0])
  })
})

describe('a block', () => {
  it('is as long as the rule says, also where that is longer than the usual longest', () => {
    const first = blockAfter({ block: '7d' }, undefined)
    expect(first.until).toBe(NOW_MS + 7 * DAY_MS)
    expect(blockAfter({ block: '7d' }, first, first.until).until).toBe(first.until + 7 * DAY_MS)
    expect(blockAfter({ block: '20h' }, blockAfter({ block: '20h' }, undefined)).until).toBe(NOW_MS + DAY_MS)
  })

  it('names who, why and until when', () => {
    expect(blockAfter({}, undefined)).toEqual({
      dimension: 'ip',
      entity: 'a',
      until: NOW_MS + 5 * MINUTE_MS,
      strikes: 1,
      forgottenAt: NOW_MS + 5 * MINUTE_MS + DAY_MS,
      rule: 'r',
    })
  })

  it.each<[string, Partial<Penalty>, number[]]>([
    ['twice as long each time', {}, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]],
    ['equally long', { growth: 1 }, [5, 5, 5]],
    ['ten times as long, up to the longest', { growth: 10, longest: '2h' }, [5, 50, 120, 120]],
    ['never longer than the longest, not even the first', { longest: '1m' }, [1, 1]],
  ])('is %s', (_name, penalty, minutes) => {
    let previous: Block | undefined
    let nowMs = NOW_MS
    for (const [index, length] of minutes.entries()) {
      const block = blockAfter(penalty, previous, nowMs)
      expect(block.until - nowMs).toBe(length * MINUTE_MS)
      expect(block.strikes).toBe(index + 1)
      previous = block
      nowMs = block.until
    }
  })

  it('starts again with the first when the one before is forgotten', () => {
    const first = blockAfter({ forgetAfter: '1h' }, undefined)
    expect(blockAfter({ forgetAfter: '1h' }, first, first.forgottenAt - 1).strikes).toBe(2)
    expect(blockAfter({ forgetAfter: '1h' }, first, first.forgottenAt)).toMatchObject({
      strikes: 1,
      until: first.forgottenAt + 5 * MINUTE_MS,
    })
  })

  it('after very many is the longest, and in whole milliseconds', () => {
    const previous = { ...blockAfter({}, undefined), strikes: 10_000 }
    expect(blockAfter({}, previous).until).toBe(NOW_MS + DAY_MS)
    expect(blockAfter({ block: 0.5, forgetAfter: 0.5 }, undefined)).toMatchObject({
      until: NOW_MS + 1,
      forgottenAt: NOW_MS + 2,
    })
  })
})
