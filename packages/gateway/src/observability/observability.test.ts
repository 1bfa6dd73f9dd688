import { renderMetrics } from '@sluice/runtime'
import { FakeClock } from '@sluice/testing'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it } from 'vitest'
import {
  configOf,
  RawClient,
  routeOf,
  startGateway,
  startUpstream,
  type TestGateway,
  until,
} from '../gateway.test.support.ts'

const RULES = {
  rules: [
    {
      name: 'per-ip',
      resource: '/*',
      dimension: 'ip',
      algorithm: 'fixed-window' as const,
      limit: 1,
      window: '1h' as const,
    },
  ],
}

const REQUEST = [
  'GET /orders/7?token=SECRET-1 HTTP/1.1',
  'Host: api.example',
  'Authorization: Bearer SECRET-2',
  'Cookie: session=SECRET-3',
  'X-User: ann "the" admin',
  'Referer: https://shop.example/cart?code=SECRET-4',
  'User-Agent: test"\\\xe9 agent',
  '',
  '',
].join('\r\n')

async function logged(accessLog: 'json' | 'combined'): Promise<readonly string[]> {
  const app = await startUpstream((_request, response) => response.end('12345'))
  const clock = new FakeClock()
  clock.setMicros(Date.UTC(2026, 10, 18, 9, 5, 7, 250) * 1000)
  const { port, accessLines } = await startGateway({
    config: configOf([routeOf()], { app: [app.url] }, { accessLog }),
    ruleSet: RULES,
    clock,
  })
  for (const expected of [1, 2]) {
    const client = new RawClient(port)
    client.send(REQUEST)
    await until(() => accessLines.length === expected)
  }
  return accessLines
}

describe('the access log', () => {
  it('has a line of JSON for each request, without secrets', async () => {
    const lines = await logged('json')
    expect(lines.join()).not.toContain('SECRET')
    const [allowed, denied] = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(allowed).toEqual({
      time: '2026-11-18T09:05:07.250Z',
      requestId: 'id-1',
      client: '127.0.0.1',
      user: 'ann "the" admin',
      route: 'all',
      method: 'GET',
      host: 'api.example',
      path: '/orders/7',
      protocol: 'HTTP/1.1',
      status: 200,
      durationMs: expect.any(Number),
      bytesIn: 0,
      bytesOut: 5,
      instance: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    })
    expect(denied).toMatchObject({ status: 429, requestId: 'id-2', deniedBy: 'per-ip' })
    expect(denied!['instance']).toBeUndefined()
  })

  it('has lines in the combined format, which nothing in a request can break', async () => {
    const [line] = await logged('combined')
    expect(line).toBe(
      '127.0.0.1 - ann\\x20\\x22the\\x22\\x20admin [18/Nov/2026:09:05:07 +0000] "GET /orders/7 HTTP/1.1" 200 5 ' +
        '"https://shop.example/cart" "test\\x22\\x5C\\xE9 agent"',
    )
  })

  it('is off by default', async () => {
    const app = await startUpstream()
    const { origin, accessLines, gateway } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    await (await fetch(origin)).text()
    await until(() => gateway.inFlight === 0)
    expect(accessLines).toEqual([])
  })
})

describe('metrics', () => {
  function lines({ metrics }: TestGateway, name: string): readonly string[] {
    return renderMetrics(metrics.snapshot())
      .body.split('\n')
      .filter((line) => line.startsWith(name) && !line.endsWith(' 0'))
  }

  it('count requests by route and class, denials, failures and retries', async () => {
    const app = await startUpstream()
    const dead = `http://127.0.0.1:${await freePort()}`
    const started = await startGateway({ config: configOf([routeOf()], { app: [dead, app.url] }), ruleSet: RULES })
    await (await fetch(started.origin)).text()
    await (await fetch(started.origin)).text()
    await until(() => started.gateway.inFlight === 0)
    expect(lines(started, 'sluice_gateway_requests_total')).toEqual([
      'sluice_gateway_requests_total{route="all",status="2xx"} 1',
      'sluice_gateway_requests_total{route="all",status="4xx"} 1',
    ])
    expect(lines(started, 'sluice_gateway_denied_total')).toEqual(['sluice_gateway_denied_total{route="all"} 1'])
    expect(lines(started, 'sluice_gateway_upstream_failures_total')).toEqual([
      'sluice_gateway_upstream_failures_total{upstream="app"} 1',
    ])
    expect(lines(started, 'sluice_gateway_retries_total')).toEqual(['sluice_gateway_retries_total{upstream="app"} 1'])
    expect(lines(started, 'sluice_gateway_request_duration_seconds_count')).toEqual([
      'sluice_gateway_request_duration_seconds_count{route="all"} 2',
    ])
  })

  it('show what is in flight and open', async () => {
    const app = await startUpstream(() => undefined)
    const started = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const client = new RawClient(started.port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await until(() => started.gateway.inFlight === 1)
    expect(lines(started, 'sluice_gateway_in_flight')).toEqual(['sluice_gateway_in_flight 1'])
    expect(lines(started, 'sluice_gateway_connections')).toEqual(['sluice_gateway_connections 1'])
    client.socket.destroy()
    await until(() => started.gateway.inFlight === 0)
    expect(lines(started, 'sluice_gateway_requests_total')).toEqual([
      'sluice_gateway_requests_total{route="all",status="none"} 1',
    ])
  })

  it('have no label that a client can choose', async () => {
    const app = await startUpstream()
    const config = configOf([routeOf()], { app: [app.url] })
    const find = ({ path }: { path: string }) => (path === '/known' ? config.router.routes[0] : undefined)
    const started = await startGateway({ config: { ...config, router: { ...config.router, find } } })
    const series = (): number => renderMetrics(started.metrics.snapshot()).body.split('\n').length
    await (await fetch(`${started.origin}/known`)).text()
    const before = series()
    for (let index = 0; index < 20; index++) {
      const headers = { host: `host-${index}.example`, 'user-agent': `agent-${index}` }
      await (
        await fetch(`${started.origin}/path-${index}`, { method: index % 2 === 0 ? 'GET' : 'PUT', headers })
      ).text()
    }
    expect(series()).toBe(before)
    expect(lines(started, 'sluice_gateway_requests_total')).toContain(
      'sluice_gateway_requests_total{route="",status="4xx"} 20',
    )
  })
})
