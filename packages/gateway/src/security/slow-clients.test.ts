import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { systemMonotonicMs } from '@sluice/core/internal'
import { describe, expect, it, onTestFinished } from 'vitest'
import { configOf, RawClient, routeOf, startGateway, startUpstream, turns, until } from '../gateway.test.support.ts'

async function crowd(port: number, size: number): Promise<readonly Socket[]> {
  const sockets = Array.from({ length: size }, () => connect(port, '127.0.0.1').on('error', () => undefined))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (const socket of sockets) socket.resume()
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  return sockets
}

describe('slow clients', () => {
  it('are dropped in time, a thousand of them, while others are served', async () => {
    const app = await startUpstream()
    const { origin, port, gateway, metrics } = await startGateway({
      config: configOf([routeOf()], { app: [app.url] }),
      bounds: { headersMs: 1000 },
    })
    const sockets = await crowd(port, 1000)
    const startedMs = systemMonotonicMs()
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ')
    const closed = Promise.all(sockets.map((socket) => (socket.closed ? undefined : once(socket, 'close'))))
    let isOver = false
    void closed.then(() => {
      isOver = true
    })
    let served = 0
    while (!isOver) {
      const response = await fetch(origin)
      expect([response.status, await response.text()]).toEqual([200, 'ok'])
      served++
    }
    // The limit, and the interval in which it is checked; the rest is what a busy machine needs.
    expect(systemMonotonicMs() - startedMs).toBeLessThan(8000)
    expect(served).toBeGreaterThan(3)
    expect(app.received).toHaveLength(served)
    await until(() => gateway.connections <= 2)
    const rejected = metrics.snapshot().families.find(({ name }) => name === 'sluice_gateway_rejected_total')
    expect(rejected?.samples).toContainEqual({ values: ['timeout'], value: 1000 })
  })

  it('may not take forever for a body either', async () => {
    const app = await startUpstream()
    const { port, gateway } = await startGateway({
      config: configOf([routeOf()], { app: [app.url] }),
      bounds: { headersMs: 300, requestMs: 600 },
    })
    const client = new RawClient(port)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n')
    // Byte by byte, so that the connection is never idle.
    while (!client.isClosed) {
      client.send('x')
      await turns(5)
    }
    expect(client.text).toMatch(/^HTTP\/1\.1 408 /)
    await until(() => gateway.inFlight === 0)
    expect(app.received).toEqual([])
  })
})

describe('bounds before a route is known', () => {
  it.each([
    ['many headers', Array.from({ length: 101 }, (_, index) => `X-${index}: 1`)],
    ['a long header', [`X: ${'x'.repeat(17_000)}`]],
  ])('%s are answered with 431', async (_title, lines) => {
    const app = await startUpstream()
    const { port } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const client = new RawClient(port)
    client.send(['GET / HTTP/1.1', 'Host: a', ...lines, '', ''].join('\r\n'))
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 431 /)
    expect(app.received).toEqual([])
  })

  it('a connection above the number is answered with 503 and closed', async () => {
    const app = await startUpstream()
    const { port, gateway } = await startGateway({
      config: configOf([routeOf()], { app: [app.url] }),
      bounds: { connections: 2 },
    })
    const [first] = [new RawClient(port), new RawClient(port)]
    await until(() => gateway.connections === 2)
    expect(await new RawClient(port).closed()).toMatch(/^HTTP\/1\.1 503 /)
    first!.socket.destroy()
    await until(() => gateway.connections === 1)
    const next = new RawClient(port)
    next.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await next.until('ok')
  })
})
