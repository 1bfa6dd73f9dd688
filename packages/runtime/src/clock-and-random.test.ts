import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemNowMs, systemRandom, systemSleep, systemTurnEnd } from './clock-and-random.ts'

const DAY_MS = 86_400_000

describe('systemSleep', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  function observe(promise: Promise<void>): () => string {
    let outcome = 'waiting'
    promise.then(
      () => {
        outcome = 'done'
      },
      (error: unknown) => {
        outcome = `failed: ${error}`
      },
    )
    return () => outcome
  }

  it.each([
    { delayMs: 0, waitingUntilMs: undefined, doneAtMs: 1 },
    { delayMs: 1, waitingUntilMs: 0, doneAtMs: 1 },
    { delayMs: 1500, waitingUntilMs: 1499, doneAtMs: 1500 },
    { delayMs: 10.2, waitingUntilMs: 10, doneAtMs: 11 },
    { delayMs: 60 * DAY_MS, waitingUntilMs: 60 * DAY_MS - 1, doneAtMs: 60 * DAY_MS },
  ])('waits $delayMs ms and leaves nothing behind', async ({ delayMs, waitingUntilMs, doneAtMs }) => {
    const controller = new AbortController()
    const outcome = observe(systemSleep(delayMs, controller.signal))
    await vi.advanceTimersByTimeAsync(waitingUntilMs ?? 0)
    if (waitingUntilMs !== undefined) expect(outcome()).toBe('waiting')
    await vi.advanceTimersByTimeAsync(doneAtMs - (waitingUntilMs ?? 0))
    expect(outcome()).toBe('done')
    expect(vi.getTimerCount()).toBe(0)
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })

  it('rejects at once when aborted, with no timer and no listener left', async () => {
    const controller = new AbortController()
    const outcome = observe(systemSleep(60 * DAY_MS, controller.signal))
    await vi.advanceTimersByTimeAsync(40 * DAY_MS)
    expect(vi.getTimerCount()).toBe(1)
    controller.abort('enough')
    await vi.advanceTimersByTimeAsync(0)
    expect(outcome()).toBe('failed: enough')
    expect(vi.getTimerCount()).toBe(0)
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })

  it('rejects without a timer when the signal was aborted before', async () => {
    await expect(systemSleep(10, AbortSignal.abort('early'))).rejects.toBe('early')
    expect(vi.getTimerCount()).toBe(0)
  })

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('rejects a wait of %s ms', async (delayMs) => {
    await expect(systemSleep(delayMs)).rejects.toMatchObject({ code: 'SLUICE_RUNTIME_INVALID_OPTION' })
  })
})

describe('the system clock and random numbers', () => {
  it('come from the system', () => {
    vi.useFakeTimers({ now: 1_700_000_000_000 })
    expect(systemNowMs()).toBe(1_700_000_000_000)
    vi.useRealTimers()
    vi.spyOn(Math, 'random').mockReturnValueOnce(0.125)
    expect(systemRandom()).toBe(0.125)
    vi.restoreAllMocks()
  })
})

describe('systemTurnEnd', () => {
  it('comes after all code that runs now and all that follows from it', async () => {
    const order: string[] = []
    const turnEnd = new Promise<void>((resolve) => {
      systemTurnEnd(() => {
        order.push('turn end')
        resolve()
      })
    })
    Promise.resolve().then(() => void Promise.resolve().then(() => order.push('promise')))
    order.push('code')
    await turnEnd
    expect(order).toEqual(['code', 'promise', 'turn end'])
  })

  it('comes after the code that runs now where the platform knows no turns', async () => {
    vi.stubGlobal('setImmediate', undefined)
    vi.resetModules()
    const platform = await import('./clock-and-random.ts')
    const order: string[] = []
    platform.systemTurnEnd(() => order.push('turn end'))
    order.push('code')
    await Promise.resolve()
    expect(order).toEqual(['code', 'turn end'])
  })

  it('comes while the timers of the test are fake', async () => {
    vi.useFakeTimers()
    await new Promise<void>((resolve) => systemTurnEnd(resolve))
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
  })
})
