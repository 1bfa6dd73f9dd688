import { describe, expect, it } from 'vitest'
import { FakeClock, START_MICROS } from './fake-clock.ts'
import { FakeTimers } from './fake-timers.ts'

function setUp() {
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const log: string[] = []
  const note = (name: string) => (): void => void log.push(`${name} at ${(clock.nowMicros() - START_MICROS) / 1000}`)
  return { clock, timers, log, note }
}

describe('fake timers', () => {
  it('run in the order of their times, each at its time, those of one instant as they were made', async () => {
    const { timers, log, note } = setUp()
    timers.schedule(30, note('c'))
    timers.schedule(10, note('a'))
    timers.schedule(20, note('b1'))
    timers.schedule(20, note('b2'))
    timers.schedule(31, note('later'))
    await timers.advance(30)
    expect(log).toEqual(['a at 10', 'b1 at 20', 'b2 at 20', 'c at 30'])
    expect(timers.pending).toBe(1)
    await timers.advance(1)
    expect([log.at(-1), timers.pending]).toEqual(['later at 31', 0])
  })

  it('end at the given time, whether anything was due or not', async () => {
    const { clock, timers } = setUp()
    await timers.advance(12.5)
    expect(clock.nowMicros() - START_MICROS).toBe(12_500)
  })

  it('can be cancelled, by each other too', async () => {
    const { timers, log, note } = setUp()
    const cancel = timers.schedule(20, note('cancelled'))
    timers.schedule(10, cancel)
    const never = timers.schedule(5, note('never'))
    never()
    never()
    await timers.advance(100)
    expect([log, timers.pending]).toEqual([[], 0])
  })

  it('see what is made on the way, by timers and by promises that wait for them', async () => {
    const { timers, log, note } = setUp()
    const wait = (ms: number): Promise<void> => new Promise((wake) => void timers.schedule(ms, wake))
    const walk = async (): Promise<void> => {
      for (let step = 1; step <= 3; step++) {
        await wait(10)
        note(`step ${step}`)()
      }
    }
    const walking = walk()
    timers.schedule(5, () => void timers.schedule(5, note('nested')))
    await timers.advance(30)
    await walking
    expect(log).toEqual(['step 1 at 10', 'nested at 10', 'step 2 at 20', 'step 3 at 30'])
  })

  it('run what is overdue when the clock was moved without them', async () => {
    const { clock, timers, log, note } = setUp()
    timers.schedule(10, note('late'))
    clock.advance(50)
    expect(log).toEqual([])
    await timers.advance(0)
    expect(log).toEqual(['late at 50'])
  })
})
