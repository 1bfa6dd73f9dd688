import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import type { RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import { configOf, RawClient, routeOf, startGateway, startUpstream } from './gateway.test.support.ts'

describe('a proxied request', () => {
  it('reaches the upstream and comes back', async () => {
    const app = await startUpstream((_request, reply) => {
      reply.writeHead(201, { 'X-App': 'yes', 'Set-Cookie': ['a=1', 'b=2'] })
      reply.end('hello')
    })
    const { origin } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const response = await fetch(`${origin}/orders/7?full=1`)
    expect([response.status, await response.text()]).toEqual([201, 'hello'])
    expect(response.headers.get('x-app')).toBe('yes')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(response.headers.get('x-request-id')).toBe('id-1')
    expect(app.received[0]).toMatchObject({ method: 'GET', url: '/orders/7?full=1', body: '' })
  })

  it.each([
    ['with a length', { 'Content-Length': '11' }],
    ['in chunks', { 'Transfer-Encoding': 'chunked' }],
  ])('carries a body %s', async (_title, headers) => {
    const app = await startUpstream()
    const { port } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const sent = httpRequest({ port, method: 'POST', path: '/in', headers })
    sent.write('hello ')
    sent.end('world')
    const [response] = await once(sent, 'response')
    response.resume()
    await once(response, 'end')
    expect(response.statusCode).toBe(200)
    expect(app.received).toMatchObject([{ method: 'POST', body: 'hello world' }])
  })

  it('goes to the path and the host that the route says', async () => {
    const app = await startUpstream()
    const route = routeOf({ targetOf: (path) => `/v2${path}`, host: 'inner.example' })
    const { origin } = await startGateway({ config: configOf([route], { app: [app.url] }) })
    await (await fetch(`${origin}/a?b`)).text()
    expect(app.received[0]).toMatchObject({ url: '/v2/a?b', headers: { host: 'inner.example' } })
  })

  it('keeps the connection for the next one', async () => {
    const app = await startUpstream()
    const { port, gateway } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const client = new RawClient(port)
    client.send('GET /1 HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.until('ok')
    client.send('GET /2 HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.until('X-Request-Id: id-2')
    expect(app.received.map(({ url }) => url)).toEqual(['/1', '/2'])
    expect(gateway.connections).toBe(1)
  })
})

describe('limits', () => {
  const RULES: RuleSet = {
    rules: [{ resource: '/*', dimension: 'ip', algorithm: 'fixed-window', limit: 2, window: '1h' }],
  }

  it('are announced, and deny before the upstream is called', async () => {
    const app = await startUpstream()
    const { origin } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }), ruleSet: RULES })
    const statuses: number[] = []
    const remaining: (string | null)[] = []
    for (let call = 0; call < 3; call++) {
      const response = await fetch(`${origin}/a`)
      statuses.push(response.status)
      remaining.push(response.headers.get('x-ratelimit-remaining'))
      await response.text()
    }
    expect(statuses).toEqual([200, 200, 429])
    expect(remaining).toEqual(['1', '0', '0'])
    expect(app.received).toHaveLength(2)
  })
})
