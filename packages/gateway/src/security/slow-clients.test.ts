import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { systemMonotonicMs } from '@sluice/core/internal'
import { renderMetrics } from '@sluice/runtime'
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
  const MANY_HEADERS = Array.from({ length: 101 }, (_, index) => `X-${index}: 1`)

  it.each([
    ['many headers', MANY_HEADERS],
    [
      'many headers of an upgrade',
      ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: a', ...MANY_HEADERS],
    ],
    ['a long header', [`X: ${'x'.repeat(17_000)}`]],
  ])('%s are answered with 431', async (_title, lines) => {
    const app = await startUpstream()
    const { port, metrics } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const client = new RawClient(port)
    client.send(['GET / HTTP/1.1', 'Host: a', ...lines, '', ''].join('\r\n'))
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 431 /)
    expect(app.received).toEqual([])
    expect(renderMetrics(metrics.snapshot()).body).toContain('sluice_gateway_rejected_total{reason="headers"} 1')
  })

  it('a connection with too many requests without an answer is closed, and its requests are given up', async () => {
    let answer: (() => void) | undefined
    const app = await startUpstream((request, response) => {
      if (request.url === '/held') answer ??= () => response.end('late')
    })
    const config = configOf([routeOf()], { app: [app.url] })
    const { port, gateway, metrics } = await startGateway({ config, bounds: { requestsAtOnce: 10 }, graceMs: 1 })
    const patient = new RawClient(port)
    patient.send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(10))
    await until(() => gateway.inFlight === 10 && answer !== undefined)
    const greedy = new RawClient(port)
    greedy.send('GET /forever HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5000))
    await greedy.closed()
    await until(() => gateway.inFlight === 10)
    expect(greedy.text).toBe('')
    expect(renderMetrics(metrics.snapshot()).body).toContain('sluice_gateway_rejected_total{reason="pipeline"} 1')
    answer!()
    await patient.until('late')
    // An answer makes room for a request.
    patient.send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n')
    await until(() => gateway.inFlight === 10)
    expect(patient.isClosed).toBe(false)
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
