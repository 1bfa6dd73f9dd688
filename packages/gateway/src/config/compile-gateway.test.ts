import { mkdtempSync, utimesSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate } from '@sluice/testing/servers'
import { afterAll, describe, expect, it } from 'vitest'
import { compileGateway } from './compile-gateway.ts'
import type { GatewayConfig, RouteConfig, UpstreamConfig } from './gateway-config.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-gateway-'))
writeFileSync(join(folder, 'busy.html'), '<p>{retryAfter}</p>')
writeFileSync(join(folder, 'keys.json'), '{ "keys": [{}] }')
afterAll(() => rm(folder, { recursive: true }))

const SHOP: UpstreamConfig = { instances: [{ url: 'http://10.0.0.7:3000' }] }

function compile(config: GatewayConfig) {
  return compileGateway({ upstreams: { shop: SHOP }, ...config }, { folder })
}

function compileRoute(route: Partial<RouteConfig>, gateway: GatewayConfig['gateway'] = {}) {
  const config = compile({ gateway, routes: [{ name: 'r', match: {}, upstream: 'shop', ...route }] })
  return config.router.routes[0]!
}

describe('a compiled configuration', () => {
  it('has the defaults', () => {
    expect(compile({})).toMatchObject({
      options: {},
      upstreams: new Map([['shop', { ...SHOP, connectMs: 2000 }]]),
      trustedProxies: [],
      proxyProtocolFrom: [],
      accessLog: 'off',
      healthPaths: new Set(['/livez', '/readyz']),
    })
    expect(compileRoute({})).toEqual({
      name: 'r',
      upstream: 'shop',
      targetOf: expect.any(Function),
      host: undefined,
      resource: undefined,
      auth: 'optional',
      isLimited: true,
      refunds: undefined,
      blockAfter: undefined,
      denial: undefined,
      webSocket: undefined,
      timeouts: { connectMs: 2000, headersMs: 30_000, idleMs: 60_000, totalMs: Number.POSITIVE_INFINITY },
      maxBodyBytes: 10_485_760,
      retries: { attempts: 1, statuses: new Set([502, 503, 504]), budget: 0.2 },
      priority: 1,
    })
  })

  it('takes what a route says before what the gateway says', () => {
    const gateway = { timeouts: { connect: '1s', idle: '5s' }, maxBodyBytes: 5 }
    const route = compileRoute({ timeouts: { idle: 7000, total: '1h' }, maxBodyBytes: 0 }, gateway)
    expect(route.timeouts).toEqual({ connectMs: 1000, headersMs: 30_000, idleMs: 7000, totalMs: 3_600_000 })
    expect([route.maxBodyBytes, compileRoute({}, gateway).maxBodyBytes]).toEqual([0, 5])
  })

  it('refunds by status and class', () => {
    const statuses = [0, 200, 304, 401, 404, 500, 503]
    const refunded = (charge: RouteConfig['charge']) =>
      statuses.filter((status) => compileRoute(charge === undefined ? {} : { charge }).refunds?.(status))
    expect(refunded({ refund: ['5xx', 304] })).toEqual([304, 500, 503])
    expect(refunded({ only: [401] })).toEqual([0, 200, 304, 404, 500, 503])
    expect(refunded({ only: ['4xx', 200] })).toEqual([0, 304, 500, 503])
    expect(refunded(undefined)).toEqual([])
  })

  it('has durations in milliseconds, files read and their paths absolute', () => {
    const blockAfter = { responses: 3, within: '1m', blockFor: '1h' }
    const route = compileRoute({
      blockAfter,
      denial: { body: 'file:busy.html', contentType: 'text/html' },
      webSocket: { bytesPerSecond: 5 },
      rewrite: { host: 'inner', addPrefix: '/v2' },
    })
    expect(route).toMatchObject({
      host: 'inner',
      blockAfter: { responses: 3, withinMs: 60_000, blockForMs: 3_600_000, statuses: new Set([401, 403]) },
      denial: { status: 429, contentType: 'text/html', body: '<p>{retryAfter}</p>' },
      webSocket: {
        rates: { messagesPerSecond: Number.POSITIVE_INFINITY, bytesPerSecond: 5, burstSeconds: 1 },
        messageResource: undefined,
        byteResource: undefined,
      },
    })
    expect(route.targetOf('/a?b')).toBe('/v2/a?b')
    const { options } = compile({ gateway: { jwt: { jwks: 'keys.json' } } })
    expect(options.jwt?.jwks).toBe(join(folder, 'keys.json'))
    const remote = compile({ gateway: { jwt: { jwks: 'https://x/keys' } } })
    expect(remote.options.jwt?.jwks).toBe('https://x/keys')
  })

  it('routes requests, and says which paths are ambiguous', () => {
    const { router } = compile({
      gateway: { consumers: [{ name: 'a', keys: [`sha256:${'a'.repeat(64)}`] }] },
      routes: [
        { name: 'open', match: { path: '/open/*', headers: { 'X-A': '1' } }, upstream: 'shop' },
        { name: 'closed', match: { path: '/closed/*' }, upstream: 'shop', auth: 'required' },
        { name: 'list', match: { path: '/orders' }, upstream: 'shop', timeouts: { idle: '1s' } },
        { name: 'item', match: { path: '/orders/:id' }, upstream: 'shop' },
      ],
    })
    const ask = (path: string) => ({ method: 'GET', host: 'h', path, header: (name: string) => name.slice(2) && '1' })
    expect(router.find(ask('/open/a'))?.name).toBe('open')
    expect(router.find(ask('/closed/a'))?.name).toBe('closed')
    expect(router.find(ask('/open/..%2fclosed/a'))).toBeUndefined()
    expect([router.isAmbiguous(ask('/open/..%2fclosed/a')), router.isAmbiguous(ask('/none'))]).toEqual([true, false])
    expect(router.find(ask('/orders/'))?.name).toBe('list')
  })

  it('names its files, and is another when those of an upstream have changed', async () => {
    const { certificateFile, keyFile } = await makeCertificate(folder)
    const tls = { ca: certificateFile, cert: certificateFile, key: keyFile }
    const config: GatewayConfig = {
      routes: [{ name: 'r', match: {}, upstream: 'shop', denial: { body: 'file:busy.html' } }],
      upstreams: { shop: { instances: [{ url: 'https://10.0.0.7' }], tls } },
    }
    const before = compile(config)
    expect(before.files).toEqual([join(folder, 'busy.html'), certificateFile, certificateFile, keyFile])
    expect(compile(config).upstreams).toEqual(before.upstreams)
    const later = new Date(1)
    utimesSync(keyFile, later, later)
    expect(compile(config).upstreams).not.toEqual(before.upstreams)
  })

  it('has other upstreams when the time limit for connecting is another', () => {
    const limits = ['1s', '1s', '2s'].map((connect) => compile({ gateway: { timeouts: { connect } } }).upstreams)
    expect(limits[1]).toEqual(limits[0])
    expect(limits[2]).not.toEqual(limits[0])
    expect(limits.map((upstreams) => upstreams.get('shop')?.connectMs)).toEqual([1000, 1000, 2000])
  })

  it('is not made of a configuration with problems', () => {
    expect(() => compileRoute({ upstream: 'shp' })).toThrow(
      'the gateway configuration has a problem: /routes/0/upstream is "shp", expected the name of an upstream; did you',
    )
  })
})
