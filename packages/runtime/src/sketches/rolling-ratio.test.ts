import { describe, expect, it } from 'vitest'
import { RollingRatio } from './rolling-ratio.ts'

function ratioAt(atMs: number, windowMs = 120_000) {
  const clock = { atMs }
  return { clock, denials: new RollingRatio({ windowMs, nowMs: () => clock.atMs }) }
}

describe('RollingRatio', () => {
  it('is the share of hits in the window asked for', () => {
    const { clock, denials } = ratioAt(0)
    const steps = [
      { atMs: 0, hits: 0, misses: 80, ratios: { 1000: 0, 120000: 0 } },
      { atMs: 60_000, hits: 20, misses: 0, ratios: { 1000: 1, 60000: 1, 120000: 0.2 } },
      { atMs: 119_999, hits: 0, misses: 0, ratios: { 1000: undefined, 60000: 1, 120000: 0.2 } },
      { atMs: 120_000, hits: 0, misses: 60, ratios: { 1000: 0, 61000: 0.25, 120000: 0.25 } },
      { atMs: 240_000, hits: 0, misses: 0, ratios: { 120000: undefined } },
    ]
    for (const { atMs, hits, misses, ratios } of steps) {
      clock.atMs = atMs
      if (hits > 0) denials.add(true, hits)
      for (let n = 0; n < misses; n++) denials.add(false)
      for (const [windowMs, ratio] of Object.entries(ratios)) {
        expect(denials.ratio(Number(windowMs)), `${windowMs} ms at ${atMs}`).toBe(ratio)
      }
      expect(denials.ratio()).toBe(ratios[120_000])
    }
  })

  it('is never above 1, though the clock goes on while it counts', () => {
    let nowMs = 0
    const denials = new RollingRatio({ windowMs: 3000, nowMs: () => nowMs++ * 500 })
    for (let n = 0; n < 100; n++) {
      denials.add(true)
      expect(denials.ratio()).toBe(1)
    }
  })

  it('tells its counts, which can be added to those of others', () => {
    const { denials } = ratioAt(0)
    denials.add(true, 3)
    denials.add(false, 7)
    expect(denials.counts()).toEqual({ hits: 3, total: 10 })
    expect(ratioAt(0).denials.counts(1000)).toEqual({ hits: 0, total: 0 })
  })

  it('rejects amounts and windows that cannot be', () => {
    const { denials } = ratioAt(0, 5000)
    const invalid = expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' })
    for (const amount of [-1, Number.NaN]) expect(() => denials.add(true, amount)).toThrow(invalid)
    for (const windowMs of [0, 500, 6000]) expect(() => denials.ratio(windowMs)).toThrow(invalid)
    expect(() => ratioAt(0, 500)).toThrow(invalid)
  })
})
