import { EventEmitter } from 'node:events'
import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Reconnector, reconnectDelayMs } from './reconnector.ts'

/** A client that connects when told to. */
class FakeClient extends EventEmitter {
  isOpen = false
  attempts = 0
  complains = false
  #settle: ((error?: Error) => void) | undefined

  connect(): Promise<void> {
    expect(this.isOpen).toBe(false)
    this.isOpen = true
    this.attempts++
    return new Promise((resolve, reject) => {
      this.#settle = (error) => {
        if (error === undefined) return resolve()
        this.isOpen = false
        this.emit('error', error)
        reject(error)
      }
    })
  }

  destroy(): void {
    this.isOpen = false
    this.#settle?.(new Error('destroyed'))
    this.emit('end')
    if (this.complains) throw new Error('a part was closed before')
  }

  succeed(): void {
    this.#settle?.()
  }

  fail(message = 'refused'): void {
    this.#settle?.(new Error(message))
  }

  lose(): void {
    this.isOpen = false
    this.emit('error', new Error('lost'))
  }
}

function keep(): { client: FakeClient; timers: FakeTimers; keeper: Reconnector } {
  const client = new FakeClient()
  const timers = new FakeTimers(new FakeClock())
  const middle = { nextUint32: () => 2 ** 31 }
  return { client, timers, keeper: new Reconnector(client, { timers, random: middle, connectTimeoutMs: 2000 }) }
}

it('tries again later and later, and never gives up', async () => {
  const { client, timers, keeper } = keep()
  for (const delayMs of [50, 100, 200, 400, 500, 500, 500]) {
    const { attempts } = client
    client.fail()
    await timers.advance(delayMs - 1)
    expect(client.attempts).toBe(attempts)
    expect(keeper.failure?.message).toBe('refused')
    await timers.advance(1)
    expect(client.attempts).toBe(attempts + 1)
  }
  await keeper.close()
})

it('connects again after a loss, at first after 50 ms whatever was before', async () => {
  const { client, timers, keeper } = keep()
  for (let failure = 0; failure < 3; failure++) {
    client.fail()
    await timers.advance(500)
  }
  client.succeed()
  await timers.advance(100_000)
  expect([client.attempts, keeper.failure]).toEqual([4, undefined])
  client.lose()
  await timers.advance(49)
  expect([client.attempts, keeper.failure?.message]).toEqual([4, 'lost'])
  await timers.advance(1)
  expect(client.attempts).toBe(5)
  await keeper.close()
})

it('ends a try that takes too long', async () => {
  const { client, timers, keeper } = keep()
  await timers.advance(1999)
  expect(client.isOpen).toBe(true)
  await timers.advance(1)
  expect(client.isOpen).toBe(false)
  expect(keeper.failure?.message).toContain('2000 ms')
  await timers.advance(50)
  expect(client.attempts).toBe(2)
  await keeper.close()
})

it('goes on when a client complains about its end', async () => {
  const { client, timers, keeper } = keep()
  client.complains = true
  await timers.advance(2000 + 50)
  expect(client.attempts).toBe(2)
  client.succeed()
  await timers.advance(0)
  keeper.drop()
  await timers.advance(50)
  expect(client.attempts).toBe(3)
  await keeper.close()
})

it('replaces a connection that is dropped', async () => {
  const { client, timers, keeper } = keep()
  client.succeed()
  await timers.advance(0)
  keeper.drop()
  await timers.advance(50)
  expect(client.attempts).toBe(2)
  await keeper.close()
})

it.each(['while it tries', 'while it waits for the next try', 'while it is connected'])(
  'leaves nothing behind when closed %s',
  async (when) => {
    const { client, timers, keeper } = keep()
    await timers.advance(0)
    if (when.includes('waits')) client.fail()
    if (when.includes('connected')) client.succeed()
    await timers.advance(0)
    await keeper.close()
    await keeper.close()
    await timers.advance(0)
    expect([client.isOpen, timers.pending]).toEqual([false, 0])
    await timers.advance(100_000)
    expect(client.attempts).toBe(1)
  },
)

const LARGEST = 2 ** 32 - 1

describe('the time until the next connection attempt', () => {
  it.each([
    [0, 37.5, 50, 62.5],
    [1, 75, 100, 125],
    [2, 150, 200, 250],
    [3, 300, 400, 500],
    [4, 500, 500, 500],
    [1_000_000, 500, 500, 500],
  ])('after %i failures is %d to %d to %d ms', (failures, least, middle, most) => {
    expect(reconnectDelayMs(failures, { nextUint32: () => 0 })).toBe(least)
    expect(reconnectDelayMs(failures, { nextUint32: () => 2 ** 31 })).toBe(middle)
    expect(reconnectDelayMs(failures, { nextUint32: () => LARGEST })).toBeCloseTo(most, 6)
  })

  it('differs between clients until it reaches the longest', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(2), (seed, failures) => {
        const [one, other] = [
          reconnectDelayMs(failures, seededRandom(seed)),
          reconnectDelayMs(failures, seededRandom(seed + 1)),
        ]
        expect(one).not.toBe(other)
      }),
    )
  })
})
