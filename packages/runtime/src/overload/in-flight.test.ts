import { describe, expect, it } from 'vitest'
import { InFlight } from './in-flight.ts'

describe('InFlight', () => {
  it('rejects at once what does not fit, and takes work again as soon as some is done', () => {
    const inFlight = new InFlight({ most: 2 })
    expect([1, 2, 3, 4].map(() => inFlight.tryEnter())).toEqual([true, true, false, false])
    expect(inFlight.counts().current).toBe(2)
    inFlight.leave()
    expect([1, 2].map(() => inFlight.tryEnter())).toEqual([true, false])
    inFlight.leave()
    inFlight.leave()
    expect(inFlight.counts()).toEqual({ current: 0, peak: 2, entered: 3, refusedFull: 3, refusedOverloaded: 0 })
  })

  it('rejects everything while it is overloaded, and counts that apart', () => {
    let isOverloaded = false
    const inFlight = new InFlight({ most: 2, isOverloaded: () => isOverloaded })
    inFlight.tryEnter()
    isOverloaded = true
    expect([1, 2].map(() => inFlight.tryEnter())).toEqual([false, false])
    isOverloaded = false
    expect(inFlight.tryEnter()).toBe(true)
    isOverloaded = true
    expect(inFlight.tryEnter()).toBe(false)
    expect(inFlight.counts()).toEqual({ current: 2, peak: 2, entered: 2, refusedFull: 1, refusedOverloaded: 2 })
  })

  it('cannot be left more often than it was entered', () => {
    const inFlight = new InFlight({ most: 1 })
    const code = 'SLUICE_RUNTIME_INVALID_OPTION'
    expect(() => inFlight.leave()).toThrow(expect.objectContaining({ code }))
    inFlight.tryEnter()
    inFlight.leave()
    expect(() => inFlight.leave()).toThrow(expect.objectContaining({ code }))
    expect(inFlight.counts().current).toBe(0)
  })

  it.each([0, -1, 1.5, Number.NaN])('rejects a bound of %s', (most) => {
    expect(() => new InFlight({ most })).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }))
  })
})
