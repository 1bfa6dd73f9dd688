import { describe, expect, it } from 'vitest'
import { LagGuard, type LagGuardOptions } from './lag-guard.ts'

function guardAt(atMs: number, options: Partial<LagGuardOptions> = {}) {
  const loop: { atMs: number; lagMs: number | undefined; reads: number } = { atMs, lagMs: 0, reads: 0 }
  const readMs = (): number | undefined => {
    loop.reads++
    return loop.lagMs
  }
  const guard = new LagGuard({ delay: { readMs }, nowMs: () => loop.atMs, lateFromMs: 100, everyMs: 250, ...options })
  return { loop, guard }
}

describe('LagGuard', () => {
  it('says that the loop is late from one bound on, until it is below another', () => {
    const { loop, guard } = guardAt(0, { untilBelowMs: 40 })
    const steps = [
      { lagMs: 0, isLate: false },
      { lagMs: 99.9, isLate: false },
      { lagMs: 100, isLate: true },
      { lagMs: 60, isLate: true },
      { lagMs: 40, isLate: true },
      { lagMs: 39.9, isLate: false },
      { lagMs: 60, isLate: false },
      { lagMs: 500, isLate: true },
      { lagMs: undefined, isLate: true },
      { lagMs: 0, isLate: false },
      { lagMs: undefined, isLate: false },
    ]
    for (const [index, { lagMs, isLate }] of steps.entries()) {
      loop.atMs += 250
      loop.lagMs = lagMs
      expect(guard.isLate(), `step ${index}`).toBe(isLate)
    }
    expect(guard.lagMs).toBe(0)
  })

  it('recovers at half the bound when nothing else is said', () => {
    const { loop, guard } = guardAt(0)
    const ask = (lagMs: number): boolean => {
      loop.atMs += 250
      loop.lagMs = lagMs
      return guard.isLate()
    }
    expect([100, 50, 49].map(ask)).toEqual([true, true, false])
  })

  it('reads the delay no more often than asked for, also when the clock goes back', () => {
    const { loop, guard } = guardAt(1000)
    loop.lagMs = 200
    const steps = [
      { atMs: 1249, reads: 0 },
      { atMs: 1250, reads: 1 },
      { atMs: 1499, reads: 1 },
      { atMs: 1001, reads: 1 },
      { atMs: 1000, reads: 2 },
      { atMs: 1100, reads: 2 },
      { atMs: 9000, reads: 3 },
    ]
    for (const { atMs, reads } of steps) {
      loop.atMs = atMs
      expect(guard.isLate()).toBe(reads > 0)
      expect(loop.reads, `at ${atMs}`).toBe(reads)
    }
    expect(guard.lagMs).toBe(200)
  })

  it.each([{ lateFromMs: 0 }, { untilBelowMs: -1 }, { untilBelowMs: 101 }, { everyMs: 0 }, { lateFromMs: Number.NaN }])(
    'rejects %o',
    (options) => {
      expect(() => guardAt(0, options)).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }))
    },
  )
})
