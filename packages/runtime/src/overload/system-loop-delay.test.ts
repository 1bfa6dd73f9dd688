import { describe, expect, it } from 'vitest'
import { systemNowMs, systemSleep } from '../clock-and-random.ts'
import { systemLoopDelay } from './system-loop-delay.ts'

describe('systemLoopDelay', () => {
  it('tells how late the event loop was since it was last asked', async () => {
    const delay = systemLoopDelay()
    const nextReading = async (): Promise<number> => {
      for (;;) {
        const lagMs = delay.readMs()
        if (lagMs !== undefined) return lagMs
        await systemSleep(1)
      }
    }
    try {
      expect(delay.readMs()).toBeUndefined()
      expect(await nextReading()).toBeGreaterThanOrEqual(0)
      const blockedUntil = systemNowMs() + 500
      while (systemNowMs() < blockedUntil);
      // The one long interval, or the mean of it and a few of 10 ms each.
      expect(await nextReading()).toBeGreaterThan(50)
    } finally {
      delay.close()
    }
    delay.readMs()
    await systemSleep(30)
    expect(delay.readMs()).toBeUndefined()
  })
})
