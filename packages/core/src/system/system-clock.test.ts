import { describe, expect, test } from 'vitest'
import { SystemClock, systemMonotonicMs } from './clock-and-timers.ts'

/** A fake wall clock that counts its readings, and callbacks that `endRun` runs. */
function source() {
  const ends: (() => void)[] = []
  const wall = { ms: 1_000, reads: 0, isFake: false }
  const clock = new SystemClock({
    readWallMs() {
      wall.reads++
      return wall.ms
    },
    isFake: () => wall.isFake,
    afterThisRun: (run) => void ends.push(run),
  })
  const endRun = () => {
    for (const run of ends.splice(0)) run()
  }
  const read = (times: number) => Array.from({ length: times }, () => clock.nowMicros()).at(-1)
  return { clock, wall, read, endRun }
}

describe('the system clock', () => {
  test('follows the wall clock, in microseconds', () => {
    const { clock, wall } = source()
    expect(clock.nowMicros()).toBe(1_000_000)
    wall.ms = 1_007
    expect(clock.nowMicros()).toBe(1_007_000)
  })

  test('goes on at the usual pace when the wall clock is set back', () => {
    const { clock, wall } = source()
    wall.ms = 5_000
    clock.nowMicros()
    wall.ms = 2_000
    expect(clock.nowMicros()).toBe(5_000_000)
    wall.ms = 2_030
    expect(clock.nowMicros()).toBe(5_030_000)
    wall.ms = 9_000
    expect(clock.nowMicros()).toBe(12_000_000)
  })

  test('reads the wall clock at every call that is not part of a tight loop', () => {
    const { wall, read } = source()
    for (let ms = 0; ms < 50; ms++) {
      wall.ms++
      expect(read(60)).toBe(wall.ms * 1000)
    }
    expect(wall.reads).toBe(50 * 60)
  })

  test('a tight loop is given one instant for 15 calls at most', () => {
    const { wall, read } = source()
    read(64)
    expect(wall.reads).toBe(64)
    wall.ms = 9_000
    expect(read(15)).toBe(1_000_000)
    expect(wall.reads).toBe(64)
    expect(read(1)).toBe(9_000_000)
  })

  test('a fake wall clock is read at every call, also in a tight loop', () => {
    const { wall, read } = source()
    read(64 + 5)
    wall.isFake = true
    wall.ms = 9_000
    expect(read(1)).toBe(9_000_000)
    wall.reads = 0
    read(100)
    expect(wall.reads).toBe(100)
  })

  test('a fake wall clock is followed back, and leaves no trace when it is gone', () => {
    const { wall, read } = source()
    wall.ms = 5_000
    read(1)
    wall.isFake = true
    wall.ms = 900_000
    expect(read(1)).toBe(900_000_000)
    wall.ms = 2_000
    expect(read(1)).toBe(2_000_000)
    wall.isFake = false
    wall.ms = 5_001
    expect(read(1)).toBe(5_001_000)
  })

  test('a loop that has slowed down is read at every call again', () => {
    const { wall, read } = source()
    read(64 + 15)
    wall.ms += 2
    read(1)
    wall.reads = 0
    read(30)
    expect(wall.reads).toBe(30)
  })

  test('nothing is remembered beyond the run of code', () => {
    const { wall, read, endRun } = source()
    read(64)
    endRun()
    wall.ms = 9_000
    expect(read(1)).toBe(9_000_000)
    wall.reads = 0
    read(60)
    expect(wall.reads).toBe(60)
  })
})

test('what measures how long something takes does not go back', () => {
  const readings = Array.from({ length: 100 }, systemMonotonicMs)
  expect(readings).toEqual(readings.toSorted((one, other) => one - other))
  expect(readings[0]).toBeGreaterThan(0)
})
