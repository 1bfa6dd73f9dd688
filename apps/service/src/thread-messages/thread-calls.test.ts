import { MessageChannel } from 'node:worker_threads'
import type { Sleep } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Handler } from './message-bus.ts'
import { ThreadLink } from './message-bus.ts'

interface TestMessages {
  slow: () => unknown
  quick: (n: number, list: readonly unknown[]) => unknown
}

/** Timers that never fire, unless the test ends them. */
class Timers {
  readonly ends: (() => void)[] = []
  open = 0

  readonly sleep: Sleep = (_delayMs, signal) =>
    new Promise((resolve, reject) => {
      this.open++
      const over = (settle: () => void) => (): void => {
        this.open--
        settle()
      }
      signal?.addEventListener(
        'abort',
        over(() => reject(signal.reason)),
      )
      this.ends.push(over(resolve))
    })
}

/** Two linked threads; the other one has these handlers. */
function linked(handlers: { slow?: Handler<TestMessages, 'slow'>; quick?: Handler<TestMessages, 'quick'> }): {
  link: ThreadLink<TestMessages, object>
  timers: Timers
} {
  const { port1, port2 } = new MessageChannel()
  onTestFinished(() => port1.close())
  const timers = new Timers()
  const other = new ThreadLink<object, TestMessages>(port2, timers.sleep)
  if (handlers.slow !== undefined) other.handle('slow', handlers.slow)
  if (handlers.quick !== undefined) other.handle('quick', handlers.quick)
  return { link: new ThreadLink(port1, timers.sleep), timers }
}

describe('a link between threads', () => {
  it('carries payloads and replies, in any order', async () => {
    const slow = Promise.withResolvers<string>()
    const { link, timers } = linked({ slow: () => slow.promise, quick: (n, list) => ({ n, list }) })
    const first = link.call(1000, 'slow')
    expect(await link.call(1000, 'quick', 1, [1, 2])).toEqual({ n: 1, list: [1, 2] })
    slow.resolve('late')
    expect(await first).toBe('late')
    expect(timers.open).toBe(0)
  })

  it('carries failures, with their code', async () => {
    const { link } = linked({
      slow: () => {
        throw Object.assign(new Error('the port is taken'), { code: 'SLUICE_SERVICE_PORT_IN_USE' })
      },
      quick: () => Promise.reject('a string'),
    })
    await expect(link.call(1000, 'slow')).rejects.toMatchObject({
      message: 'the port is taken',
      code: 'SLUICE_SERVICE_PORT_IN_USE',
    })
    await expect(link.call(1000, 'quick', 1, [])).rejects.toThrow('a string')
  })

  it('rejects a payload or reply that cannot be copied, and a message without handler', async () => {
    const { link, timers } = linked({ slow: () => () => 'a function' })
    await expect(link.call(1000, 'slow')).rejects.toThrow('could not be cloned')
    await expect(link.call(1000, 'quick', 1, [() => 1])).rejects.toThrow('could not be cloned')
    await expect(link.call(1000, 'quick', 1, [])).rejects.toThrow('message "quick" has no handler')
    expect(timers.open).toBe(0)
  })

  it('rejects after the timeout, and ignores a later reply', async () => {
    const late = Promise.withResolvers<string>()
    const { link, timers } = linked({ slow: () => late.promise, quick: (n) => n })
    const call = link.call(1000, 'slow')
    timers.ends[0]!()
    await expect(call).rejects.toMatchObject({ code: 'THREAD_TIMEOUT' })
    late.resolve('too late')
    expect(await link.call(1000, 'quick', 7, [])).toBe(7)
  })

  it('rejects pending and later calls when it is closed', async () => {
    const { link, timers } = linked({ slow: () => new Promise(() => undefined) })
    const call = link.call(1000, 'slow')
    link.close()
    await expect(call).rejects.toMatchObject({ code: 'THREAD_ENDED' })
    await expect(link.call(1000, 'slow')).rejects.toMatchObject({ code: 'THREAD_ENDED' })
    expect(timers.open).toBe(0)
  })
})
