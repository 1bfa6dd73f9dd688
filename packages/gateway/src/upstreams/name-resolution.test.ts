import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createUpstream } from './create-upstream.ts'
import { attemptOn, countsOf, fakeUpstream, OK } from './upstreams.test.support.ts'

/** A name server for one name, whose answer tests change. */
function names(...first: string[]) {
  const state = { addresses: first, error: undefined as Error | undefined, queries: 0 }
  const resolve = (): Promise<readonly string[]> => {
    state.queries++
    return state.error === undefined ? Promise.resolve(state.addresses) : Promise.reject(state.error)
  }
  return { state, resolve }
}

const instances = [{ url: 'http://orders:8080' }]

describe('the addresses of a name', () => {
  it('become instances, and follow DNS', async () => {
    const { state, resolve } = names('10.0.0.2', '10.0.0.1')
    const { upstream, timers } = fakeUpstream({ instances, resolveEvery: '10s' }, { resolve })
    expect(upstream.stats().unresolved).toEqual([{ url: instances[0]!.url, problem: 'its name is not resolved yet' }])
    await upstream.start()
    expect(upstream.stats().unresolved).toEqual([])
    const [first, second] = ['http://orders:8080 at 10.0.0.1', 'http://orders:8080 at 10.0.0.2']
    expect(countsOf(upstream, 10)).toEqual({ [first!]: 5, [second!]: 5 })
    expect(new Set(upstream.stats().instances.map(({ url }) => url))).toEqual(new Set([instances[0]!.url]))

    state.addresses = ['10.0.0.1', '10.0.0.3']
    await timers.advance(11_000)
    expect(countsOf(upstream, 10)).toEqual({ [first!]: 5, 'http://orders:8080 at 10.0.0.3': 5 })
    // The instance that stayed kept its state.
    expect(upstream.stats().instances.map(({ requests }) => requests)).toEqual([10, 5])
    const { queries } = state
    await timers.advance(100_000)
    expect(state.queries - queries).toBeGreaterThanOrEqual(9)
    expect(state.queries - queries).toBeLessThanOrEqual(12)
    await upstream.close()
    expect(timers.pending).toBe(0)
  })

  it('stay in use while the name does not resolve; this is reported once', async () => {
    const { state, resolve } = names('10.0.0.1')
    const { upstream, timers, lines } = fakeUpstream({ instances, resolveEvery: '10s' }, { resolve })
    await upstream.start()
    state.error = new Error('queryA ESERVFAIL orders')
    await timers.advance(60_000)
    expect(countsOf(upstream, 2)).toEqual({ 'http://orders:8080': 2 })
    const warnings = lines.filter(({ level }) => level === 'warn')
    expect(warnings).toEqual([
      {
        level: 'warn',
        message: 'name of an upstream not resolved',
        fields: { upstream: 'orders', url: 'http://orders:8080', problem: 'queryA ESERVFAIL orders' },
      },
    ])
    await upstream.close()
  })

  it('are looked up again soon if there are none yet', async () => {
    const { state, resolve } = names('10.0.0.1')
    state.error = new Error('getaddrinfo ENOTFOUND orders')
    const { upstream, timers } = fakeUpstream({ instances, resolveEvery: '10s' }, { resolve })
    await upstream.start()
    expect(upstream.isAvailable).toBe(false)
    expect(upstream.stats().unresolved[0]!.problem).toBe('getaddrinfo ENOTFOUND orders')
    state.error = undefined
    await timers.advance(650)
    expect(upstream.isAvailable).toBe(true)
    expect(upstream.stats().unresolved).toEqual([])
    await upstream.close()
  })

  it('of both families are one instance if there is one of each, else those of IPv4', async () => {
    for (const [addresses, ids] of [
      [['10.0.0.1', 'fd00::1'], ['http://orders:8080']],
      [
        ['fd00::1', 'fd00::2'],
        ['http://orders:8080 at fd00::1', 'http://orders:8080 at fd00::2'],
      ],
      [
        ['10.0.0.1', '10.0.0.2', 'fd00::1'],
        ['http://orders:8080 at 10.0.0.1', 'http://orders:8080 at 10.0.0.2'],
      ],
    ] as const) {
      const { upstream } = fakeUpstream({ instances }, names(...addresses))
      await upstream.start()
      expect(upstream.stats().instances.map(({ instance }) => instance)).toEqual(ids)
      await upstream.close()
    }
  })

  it('move only their share of keys when one is added, with live traffic', async () => {
    const answered: string[] = []
    const server = createServer((request, response) => {
      answered.push(`${request.url} ${request.socket.localAddress}`)
      response.end(request.socket.localAddress)
    })
    await new Promise<void>((listening) => server.listen(0, '0.0.0.0', listening))
    const { port } = server.address() as AddressInfo
    const { state, resolve } = names('127.0.0.1', '127.0.0.2', '127.0.0.3')
    const { upstream, timers } = fakeUpstream(
      { instances: [{ url: `http://orders.invalid:${port}` }], balance: 'hash', hashBy: 'user', resolveEvery: '1s' },
      { resolve },
    )
    onTestFinished(async () => {
      await upstream.close()
      await new Promise((done) => server.close(done))
    })
    await upstream.start()
    const owners = (): Promise<string[]> =>
      Promise.all(
        Array.from({ length: 400 }, async (_, index) => {
          const attempt = attemptOn(upstream, { hashKey: `user-${index}` })
          const { body } = await attempt.dispatcher.request({ method: 'GET', path: `/${index}` })
          const owner = await body.text()
          attempt.finish(OK)
          return owner
        }),
      )
    const before = await owners()
    // The new instance arrives while requests are in flight.
    const during = owners()
    state.addresses = [...state.addresses, '127.0.0.4']
    await timers.advance(1200)
    expect(await during).toEqual(before)
    const after = await owners()
    const moved = before.flatMap((owner, index) => (after[index] === owner ? [] : [after[index]]))
    expect(new Set(moved)).toEqual(new Set(['127.0.0.4']))
    expect(moved).toHaveLength(after.filter((owner) => owner === '127.0.0.4').length)
    expect(moved.length).toBeGreaterThan(60)
    expect(moved.length).toBeLessThan(140)
    // Removed again: its keys go back to where they were, and no request fails.
    const leaving = owners()
    state.addresses = state.addresses.slice(0, 3)
    await timers.advance(1200)
    expect(await leaving).toEqual(after)
    expect(await owners()).toEqual(before)
    expect(answered).toHaveLength(5 * 400)
  })
})

it('names are resolved by the system unless told otherwise', async () => {
  const upstream = createUpstream('orders', { instances: [{ url: 'http://localhost:1' }] })
  onTestFinished(() => upstream.close())
  await upstream.start()
  expect(upstream.stats().instances.map(({ instance }) => instance)).toEqual(['http://localhost:1'])
})
