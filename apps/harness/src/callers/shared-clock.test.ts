import { describe, expect, it } from 'vitest'
import { SharedClock } from './shared-clock.ts'

describe('SharedClock', () => {
  it('stands still at the beginning of a day', () => {
    const clock = SharedClock.create()
    const now = clock.nowMicros()
    expect(now % (86_400 * 1_000_000)).toBe(0)
    expect(clock.nowMicros()).toBe(now)
  })

  it('is moved for all who share its memory', () => {
    const clock = SharedClock.create()
    const other = SharedClock.attach(clock.memory)
    clock.moveTo(1_800_000_000_123)
    expect(other.nowMicros()).toBe(1_800_000_000_123_000)
  })
})
