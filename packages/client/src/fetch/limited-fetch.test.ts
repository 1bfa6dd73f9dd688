import { createLimiter, tokenBucket } from '@sluice/core'
import { FakeClock, FakeTimers } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ApiServer, failing } from '../api-server.test.support.ts'
import { HeldTime } from '../fake-time.test.support.ts'
import type { FetchLimiter, FetchLimiterOptions } from './limited-fetch.ts'
import { limitedFetch } from './limited-fetch.ts'
import { retryFetch } from './retry-fetch.ts'

/** It is always everybody's turn; who asked is remembered. */
function everybody(): FetchLimiter & { readonly asked: [string, FetchLimiterOptions][] } {
  const asked: [string, FetchLimiterOptions][] = []
  const acquire: FetchLimiter['acquire'] = (key, options) => {
    asked.push([key, options])
    return Promise.resolve({ allowed: true, retryAfterMs: 0 })
  }
  return { asked, acquire }
}

describe('limitedFetch', () => {
  it('sends no more than the limiter lets through, and waits with the rest', async () => {
    const api = await ApiServer.start()
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    const limiter = createLimiter({ ...tokenBucket({ capacity: 3, refillPerSecond: 1 }), clock, timers })
    onTestFinished(() => limiter.close())
    const send = limitedFetch({ limiter, nowMs: () => clock.nowMicros() / 1000 })
    const calls = Array.from({ length: 5 }, () => send(api.url))
    await Promise.all(calls.slice(0, 3))
    await timers.advance(999)
    expect(api.asked).toHaveLength(3)
    await timers.advance(1)
    await calls[3]
    expect(api.asked).toHaveLength(4)
    await timers.advance(1000)
    expect((await calls[4])!.status).toBe(200)
    expect(api.asked).toHaveLength(5)
    expect(timers.pending).toBe(0)
  })

  it('rejects, and sends nothing, when the turn would come too late or never', async () => {
    const api = await ApiServer.start()
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    const limiter = createLimiter({ ...tokenBucket({ capacity: 1, refillPerSecond: 1 }), clock, timers })
    onTestFinished(() => limiter.close())
    const common = { limiter, maxWaitMs: 500, nowMs: () => clock.nowMicros() / 1000 }
    const send = limitedFetch(common)
    await (await send(api.url)).text()
    await expect(send(api.url)).rejects.toMatchObject({ code: 'SLUICE_CLIENT_TURN_REFUSED', retryAfterMs: 1000 })
    const greedy = limitedFetch({ ...common, cost: ({ method }) => (method === 'GET' ? 2 : 1) })
    await expect(greedy(api.url)).rejects.toMatchObject({ code: 'SLUICE_CLIENT_TURN_REFUSED', retryAfterMs: undefined })
    expect(api.asked).toHaveLength(1)
  })

  it('waits for the turn of its host, unless told for whose', async () => {
    const [one, two] = [await ApiServer.start(), await ApiServer.start()]
    const limiter = everybody()
    const send = limitedFetch({ limiter })
    await (await send(`${one.url}/a?b`)).text()
    await (await send(new URL(`${two.url}/a`))).text()
    const byPath = limitedFetch({
      limiter,
      key: ({ url, headers }) => `${url.pathname} ${headers.get('x-org')}`,
      cost: 3,
    })
    await (await byPath(new Request(`${one.url}/c`, { headers: { 'X-Org': 'acme' } }))).text()
    expect(limiter.asked.map(([key, { cost }]) => [key, cost])).toEqual([
      [new URL(one.url).host, 1],
      [new URL(two.url).host, 1],
      ['/c acme', 3],
    ])
  })

  it.each<[string, number, Record<string, string>, number]>([
    ['that nothing is left', 200, { RateLimit: '"a";r=0;t=30' }, 30_000],
    ['it in the older headers', 200, { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset-After': '5' }, 5000],
    ['when to come back', 429, { 'Retry-After': '7' }, 7000],
    ['that it is overloaded', 503, { 'Retry-After': '8' }, 8000],
    ['ten years, which is a mistake', 429, { 'Retry-After': '315360000' }, 86_400_000],
  ])('stays away as long as the answer says %s', async (_, status, headers, waitMs) => {
    const api = await ApiServer.start(failing(1, status, headers))
    const time = new HeldTime()
    const send = limitedFetch({ limiter: everybody(), ...time })
    expect((await send(api.url)).status).toBe(status)
    const others = [send(api.url), send(api.url)]
    await time.until(waitMs, 2)
    time.advance(waitMs - 1)
    expect(api.asked).toHaveLength(1)
    time.advance(1)
    expect((await Promise.all(others)).map((response) => response.status)).toEqual([200, 200])
    expect(time.waits).toEqual([waitMs, waitMs])
  })

  it('stays away as long as the longest of several announcements', async () => {
    const api = await ApiServer.start((response, number) => {
      response.writeHead(429, { 'Retry-After': ['5', '30', '6'][number] ?? '0' }).end()
    })
    const time = new HeldTime()
    const send = limitedFetch({ limiter: everybody(), ...time })
    await Promise.all([send(api.url), send(api.url), send(api.url)])
    const next = send(api.url)
    await time.pass(30_000)
    expect((await next).status).toBe(429)
    expect(time.waits).toEqual([30_000])
  })

  it('does not stay away from others, after other answers, or where it is not to learn', async () => {
    const spent = { RateLimit: '"a";r=0;t=30' }
    const [one, two] = [await ApiServer.start(failing(9, 200, spent)), await ApiServer.start()]
    const time = new HeldTime()
    const send = limitedFetch({ limiter: everybody(), ...time })
    await (await send(one.url)).text()
    await (await send(two.url)).text()
    two.answer = failing(9, 200, { 'Retry-After': '9', RateLimit: '"a";r=1;t=30' })
    await (await send(two.url)).text()
    await (await send(two.url)).text()
    const heedless = limitedFetch({ limiter: everybody(), learn: false, ...time })
    await (await heedless(one.url)).text()
    await (await heedless(one.url)).text()
    expect(time.waits).toEqual([])
  })

  it('rejects when the pause is longer than it may wait, and asks no limiter', async () => {
    const api = await ApiServer.start(failing(1, 429, { 'Retry-After': '7' }))
    const time = new HeldTime()
    const limiter = everybody()
    const send = limitedFetch({ limiter, maxWaitMs: 6999, ...time })
    await (await send(api.url)).text()
    await expect(send(api.url)).rejects.toMatchObject({ code: 'SLUICE_CLIENT_TURN_REFUSED', retryAfterMs: 7000 })
    expect([api.asked.length, limiter.asked.length]).toEqual([1, 1])
  })

  it('waits out a pause that began while it waited for the limiter', async () => {
    const api = await ApiServer.start(failing(1, 429, { 'Retry-After': '7' }))
    const time = new HeldTime()
    const turn = Promise.withResolvers<{ allowed: true; retryAfterMs: 0 }>()
    const turns = [Promise.resolve({ allowed: true, retryAfterMs: 0 }), turn.promise]
    const send = limitedFetch({ limiter: { acquire: () => turns.shift()! }, ...time })
    const [first, second] = [send(api.url), send(api.url)]
    expect((await first).status).toBe(429)
    turn.resolve({ allowed: true, retryAfterMs: 0 })
    await time.pass(7000)
    expect((await second).status).toBe(200)
    expect(time.waits).toEqual([7000])
  })

  it('does not wait twice when the clock is set back', async () => {
    const api = await ApiServer.start(failing(1, 429, { 'Retry-After': '7' }))
    let nowMs = 1e12
    const waits: number[] = []
    const sleep = (ms: number): Promise<void> => {
      waits.push(ms)
      return Promise.resolve()
    }
    const send = limitedFetch({ limiter: everybody(), nowMs: () => nowMs, sleep })
    await (await send(api.url)).text()
    nowMs -= 3_600_000
    expect((await send(api.url)).status).toBe(200)
    expect(waits).toEqual([7000])
  })

  it('ends with its signal, in a pause and at the limiter', async () => {
    const api = await ApiServer.start(failing(1, 429, { 'Retry-After': '7' }))
    const time = new HeldTime()
    const limiter = everybody()
    const send = limitedFetch({ limiter, ...time })
    await (await send(api.url)).text()
    const controller = new AbortController()
    const call = send(api.url, { signal: controller.signal })
    await time.until(7000)
    controller.abort('enough')
    await expect(call).rejects.toBe('enough')
    await expect(send(api.url, { signal: AbortSignal.abort('before') })).rejects.toBe('before')
    expect(time.pending).toEqual([])
    const { signal } = new AbortController()
    await (await limitedFetch({ limiter })(api.url, { signal })).text()
    expect(limiter.asked.at(-1)?.[1].signal).toBe(signal)
  })

  it('goes together with retryFetch: every try waits for its turn', async () => {
    const api = await ApiServer.start(failing(2, 429, { 'Retry-After': '10' }))
    const time = new HeldTime()
    const limiter = everybody()
    const send = retryFetch({ fetch: limitedFetch({ limiter, ...time }), random: () => 0.5, ...time })
    const answer = send(api.url)
    await time.pass(10_000)
    await time.pass(10_000)
    expect((await answer).status).toBe(200)
    expect(limiter.asked).toHaveLength(3)
    expect(time.waits).toEqual([10_000, 10_000])
  })

  it.each([0, 1.5, -1, Number.NaN])('rejects %s as the longest wait', (maxWaitMs) => {
    expect(() => limitedFetch({ limiter: everybody(), maxWaitMs })).toThrow(
      expect.objectContaining({ code: 'SLUICE_CLIENT_INVALID_OPTION' }),
    )
  })
})
