import { expect, it } from 'vitest'
import { atTurnEnd } from './event-loop.ts'
import { turnClock } from './turn-clock.ts'

it('reads the time once for all that run in one go, and anew for what comes after', async () => {
  let readings = 0
  const clock = turnClock(() => ++readings)
  expect([clock(), clock()]).toEqual([1, 1])
  const together = [1, 2, 3].map(async () => {
    await undefined
    return clock()
  })
  expect(await Promise.all(together)).toEqual([2, 2, 2])
  await new Promise<void>((resolve) => atTurnEnd(resolve))
  expect(clock()).toBe(3)
})
