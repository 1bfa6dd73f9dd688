import { seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { BreakerState } from '../store-event.ts'
import { Breaker, type BreakerOptions, type BreakerStart, NOT_ADMITTED } from './breaker.ts'

/** Chance in the middle: a pause is as long as it is called. */
const EVEN = { nextUint32: () => 0x80_00_00_00 }

function breakerOf(options: BreakerOptions & { readonly start?: BreakerStart; readonly neverOpens?: boolean } = {}) {
  const states: BreakerState[] = []
  const breaker = new Breaker({ ...options, random: EVEN, onChange: (state) => void states.push(state) })
  const fail = (nowMs: number) => breaker.failed(breaker.admit(nowMs), nowMs)
  const succeed = (nowMs: number) => breaker.succeeded(breaker.admit(nowMs), nowMs)
  return { breaker, states, fail, succeed }
}

describe('a breaker', () => {
  it('opens at the fifth failure in a row', () => {
    const { breaker, fail } = breakerOf()
    for (let call = 0; call < 4; call++) fail(call)
    expect(breaker.state).toBe('closed')
    fail(4)
    expect(breaker.state).toBe('open')
    expect(breaker.admit(5)).toBe(NOT_ADMITTED)
  })

  it('starts to count again with every success', () => {
    const { breaker, fail, succeed } = breakerOf()
    for (let call = 0; call < 4; call++) fail(call)
    succeed(4)
    for (let call = 0; call < 4; call++) fail(5)
    expect(breaker.state).toBe('closed')
  })

  it('opens when half of at least 20 calls within a second failed', () => {
    const { breaker, fail, succeed } = breakerOf()
    for (let pair = 0; pair < 9; pair++) {
      succeed(pair * 50)
      fail(pair * 50)
    }
    succeed(500)
    expect(breaker.state).toBe('closed')
    fail(999)
    expect(breaker.state).toBe('open')
  })

  it('does not open when fewer than half failed', () => {
    const { breaker, fail, succeed } = breakerOf()
    for (let round = 0; round < 200; round++) {
      succeed(round)
      succeed(round)
      fail(round)
    }
    expect(breaker.state).toBe('closed')
  })

  it('forgets calls of more than a second ago', () => {
    const { breaker, fail, succeed } = breakerOf()
    for (let pair = 0; pair < 9; pair++) {
      succeed(99)
      fail(99)
    }
    succeed(1000)
    fail(1000)
    expect(breaker.state).toBe('closed')
    succeed(1_000_000)
    fail(1_000_000)
    expect(breaker.state).toBe('closed')
  })

  it('lets one probe through after the pause, and nothing beside it', () => {
    const { breaker, fail, states } = breakerOf({ failures: 1 })
    fail(1000)
    expect(breaker.pauseLeftMs(1100)).toBe(150)
    expect(breaker.admit(1249.9)).toBe(NOT_ADMITTED)
    const probe = breaker.admit(1250)
    expect(probe).not.toBe(NOT_ADMITTED)
    expect(breaker.state).toBe('half-open')
    expect(breaker.pauseLeftMs(1250)).toBe(0)
    expect(breaker.admit(1250)).toBe(NOT_ADMITTED)
    expect(breaker.admit(9999)).toBe(NOT_ADMITTED)
    breaker.succeeded(probe, 1260)
    expect(breaker.admit(1260)).not.toBe(NOT_ADMITTED)
    expect(states).toEqual(['open', 'half-open', 'closed'])
  })

  it('pauses twice as long after each failed probe, up to a second, and starts over after a success', () => {
    const { breaker, fail, succeed } = breakerOf({ failures: 1 })
    let nowMs = 0
    const pauses: number[] = []
    for (let round = 0; round < 5; round++) {
      fail(nowMs)
      pauses.push(breaker.pauseLeftMs(nowMs))
      nowMs += breaker.pauseLeftMs(nowMs)
    }
    expect(pauses).toEqual([250, 500, 1000, 1000, 1000])
    succeed(nowMs)
    fail(nowMs)
    expect(breaker.pauseLeftMs(nowMs)).toBe(250)
  })

  it('draws each pause from three quarters to five quarters', () => {
    const pauses = [0, 0xff_ff_ff_ff].map((draw) => {
      const breaker = new Breaker({ failures: 1, random: { nextUint32: () => draw } })
      breaker.failed(breaker.admit(0), 0)
      return breaker.pauseLeftMs(0)
    })
    expect(pauses[0]).toBe(187.5)
    expect(pauses[1]).toBeCloseTo(312.5, 6)
    const random = seededRandom(1)
    for (let round = 0; round < 1000; round++) {
      const breaker = new Breaker({ failures: 1, random })
      breaker.failed(breaker.admit(0), 0)
      expect(breaker.pauseLeftMs(0)).toBeGreaterThanOrEqual(187.5)
      expect(breaker.pauseLeftMs(0)).toBeLessThan(312.5)
    }
  })

  it('ignores what was sent before it opened', () => {
    const { breaker, fail } = breakerOf({ failures: 2 })
    const stragglers = [breaker.admit(0), breaker.admit(0), breaker.admit(0)]
    fail(10)
    fail(10)
    breaker.succeeded(stragglers[0]!, 20)
    expect(breaker.state).toBe('open')
    const probe = breaker.admit(260)
    breaker.failed(stragglers[1]!, 270)
    breaker.succeeded(stragglers[2]!, 270)
    breaker.withdrawn(stragglers[2]!)
    expect(breaker.state).toBe('half-open')
    breaker.succeeded(probe, 280)
    expect(breaker.state).toBe('closed')
  })

  it('restarts its count when it closes', () => {
    const { breaker, fail, succeed } = breakerOf()
    for (let call = 0; call < 15; call++) succeed(0)
    for (let call = 0; call < 5; call++) fail(0)
    succeed(250)
    expect(breaker.state).toBe('closed')
    for (let call = 0; call < 4; call++) fail(251)
    expect(breaker.state).toBe('closed')
    for (let call = 0; call < 10; call++) succeed(252)
    for (let call = 0; call < 4; call++) fail(253)
    succeed(254)
    expect(breaker.state).toBe('closed')
    // The 20th call since it closed is the 9th failure; two more make it half.
    fail(255)
    expect(breaker.state).toBe('closed')
    fail(256)
    fail(256)
    expect(breaker.state).toBe('open')
  })

  it('lets the next call be the probe when the first one was misuse', () => {
    const { breaker, fail } = breakerOf({ failures: 1 })
    fail(0)
    const probe = breaker.admit(250)
    breaker.withdrawn(probe)
    expect(breaker.state).toBe('open')
    expect(breaker.admit(250)).not.toBe(NOT_ADMITTED)
    const { breaker: other } = breakerOf()
    other.withdrawn(other.admit(0))
    expect(other.state).toBe('closed')
  })

  it.each([
    ['failures', 0],
    ['basePauseMs', 0.5],
    ['maxPauseMs', 60_001],
  ])('does not take %s: %d', (option, value) => {
    expect(() => breakerOf({ [option]: value })).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_OPTION', received: value }),
    )
  })
})

describe('a breaker of a process that has just started', () => {
  it('counts no failure before the first answer, during its grace period', () => {
    const { breaker, fail } = breakerOf({ start: { atMs: 1000, graceMs: 2000 } })
    for (let call = 0; call < 100; call++) fail(1000 + call)
    for (let call = 0; call < 4; call++) fail(3000 + call)
    expect(breaker.state).toBe('closed')
    fail(3004)
    expect(breaker.state).toBe('open')
  })

  it('counts failures from the first answer on', () => {
    const { breaker, fail, succeed } = breakerOf({ start: { atMs: 0, graceMs: 2000 } })
    for (let call = 0; call < 100; call++) fail(call)
    succeed(100)
    for (let call = 0; call < 4; call++) fail(101)
    expect(breaker.state).toBe('closed')
    fail(102)
    expect(breaker.state).toBe('open')
  })

  it('probes after a tenth of the first pause, for 10 seconds', () => {
    const { breaker, fail, succeed } = breakerOf({ failures: 1, start: { atMs: 0, graceMs: 0 } })
    const pauseAt = (nowMs: number): number => {
      fail(nowMs)
      return breaker.pauseLeftMs(nowMs)
    }
    expect([pauseAt(100), pauseAt(125), pauseAt(175)]).toEqual([25, 50, 100])
    succeed(275)
    expect(pauseAt(9999)).toBe(25)
    succeed(10_100)
    expect(pauseAt(10_200)).toBe(250)
  })

  it('that guards something with breakers of its own never opens', () => {
    const { breaker, fail } = breakerOf({ neverOpens: true })
    for (let call = 0; call < 100; call++) fail(call)
    expect(breaker.state).toBe('closed')
  })
})
