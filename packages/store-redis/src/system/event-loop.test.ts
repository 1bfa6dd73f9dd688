import { expect, it } from 'vitest'
import { cachedClock, runAfterIo } from './event-loop.ts'

it('reads the time once per run of callbacks, and again for the next', async () => {
  let readings = 0
  const clock = cachedClock(() => ++readings)
  expect([clock(), clock()]).toEqual([1, 1])
  const together = [1, 2, 3].map(async () => {
    await undefined
    return clock()
  })
  expect(await Promise.all(together)).toEqual([2, 2, 2])
  await new Promise<void>((resolve) => runAfterIo(resolve))
  expect(clock()).toBe(3)
})
