import { describe, expect, it } from 'vitest'
import { FakeClock, START_MICROS } from './fake-clock.ts'

describe('a fake clock', () => {
  it('stands still until it is moved', () => {
    const clock = new FakeClock()
    expect([clock.nowMicros(), clock.nowMicros()]).toEqual([START_MICROS, START_MICROS])
    clock.advance(1500)
    expect(clock.nowMicros() - START_MICROS).toBe(1_500_000)
    clock.advance(1.001)
    expect(clock.nowMicros() - START_MICROS).toBe(1_501_001)
    clock.advanceMicros(1)
    expect(clock.nowMicros() - START_MICROS).toBe(1_501_002)
    clock.setMicros(5)
    expect(clock.nowMicros()).toBe(5)
  })

  it('starts at the first instant of a year', () => {
    expect(new Date(START_MICROS / 1000).toISOString()).toBe('2030-01-01T00:00:00.000Z')
    expect(new FakeClock(7).nowMicros()).toBe(7)
  })

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])('does not go by %d', (micros) => {
    const clock = new FakeClock()
    for (const move of [
      () => clock.advanceMicros(micros),
      () => clock.setMicros(micros),
      () => new FakeClock(micros),
    ]) {
      expect(move).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION', received: micros }))
    }
    expect(clock.nowMicros()).toBe(START_MICROS)
  })
})
