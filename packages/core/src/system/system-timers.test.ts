import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemTimers } from './clock-and-timers.ts'

const DAY_MS = 86_400_000

describe('system timers', () => {
  let runs = 0
  const run = (): void => void runs++

  beforeEach(() => {
    runs = 0
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('run once, when it is time', () => {
    systemTimers.schedule(100, run)
    vi.advanceTimersByTime(99)
    expect(runs).toBe(0)
    vi.advanceTimersByTime(1)
    expect(runs).toBe(1)
    vi.advanceTimersByTime(1000)
    expect([runs, vi.getTimerCount()]).toEqual([1, 0])
  })

  it('do not run early for a fraction of a millisecond', () => {
    systemTimers.schedule(1.2, run)
    vi.advanceTimersByTime(1)
    expect(runs).toBe(0)
    vi.advanceTimersByTime(1)
    expect(runs).toBe(1)
  })

  it('wait longer than 24.8 days, where the platform’s would fire at once', () => {
    systemTimers.schedule(60 * DAY_MS, run)
    vi.advanceTimersByTime(60 * DAY_MS - 1)
    expect(runs).toBe(0)
    vi.advanceTimersByTime(1)
    expect([runs, vi.getTimerCount()]).toEqual([1, 0])
  })

  it.each([10, 60 * DAY_MS])('can be cancelled: %d ms', (delayMs) => {
    const cancel = systemTimers.schedule(delayMs, run)
    vi.advanceTimersByTime(delayMs - 1)
    cancel()
    cancel()
    vi.advanceTimersByTime(delayMs)
    expect([runs, vi.getTimerCount()]).toEqual([0, 0])
  })
})
