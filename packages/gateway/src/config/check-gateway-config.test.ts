import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GatewayParts } from '@sluice/core/policy'
import { makeCertificate } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkGatewayConfig } from './check-gateway-config.ts'
import type { GatewayConfig, GatewayOptionsConfig, RouteConfig, UpstreamConfig } from './gateway-config.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-gateway-'))

beforeAll(() => {
  writeFileSync(join(folder, 'busy.html'), '<p>busy</p>')
  writeFileSync(join(folder, 'text.pem'), 'not a certificate')
  writeFileSync(join(folder, 'no-keys.json'), '{ "keys": [] }')
})

afterAll(() => rm(folder, { recursive: true }))

const SHOP: UpstreamConfig = { instances: [{ url: 'http://10.0.0.7:3000' }] }
const ROUTE: RouteConfig = { name: 'orders', match: { path: '/orders/*' }, upstream: 'shop' }

const CONSUMER = { name: 'acme', keys: [`sha256:${'a'.repeat(64)}`] }

const problemsOf = (config: object) => checkGatewayConfig(config as GatewayParts, { folder })

const withRoute = (route: object) => problemsOf({ routes: [{ ...ROUTE, ...route }], upstreams: { shop: SHOP } })

const withUpstream = (upstream: object) => problemsOf({ upstreams: { shop: { ...SHOP, ...upstream } } })

const withOptions = (gateway: object) => problemsOf({ gateway })

describe('a gateway configuration', () => {
  it('may be empty, or say everything', () => {
    const gateway: GatewayOptionsConfig = {
      trustedProxies: ['10.0.0.0/8'],
      forwardedHeader: 'X-Real-IP',
      keyHeaders: ['Authorization', 'X-Key'],
      identityHeaders: { user: 'X-Tenant-Id', tenant: 'X-User-Id', tier: 'X-Forwarded-User' },
      proxyProtocolFrom: ['192.0.2.1'],
      accessLog: 'json',
      timeouts: { connect: '1s', headers: 5000, idle: '1m', total: '10m' },
      maxBodyBytes: 0,
      healthPaths: [],
      consumers: [{ name: 'acme', keys: [`sha256:${'a'.repeat(64)}`], tier: 'premium', tenant: 'acme' }],
      jwt: { jwks: 'https://login.example.com/jwks', issuer: 'x', audience: ['a', 'b'], algorithms: ['ES256'] },
      services: { db: { url: 'tcp://127.0.0.1:5432' }, shop: { url: 'http://127.0.0.1/health', dependsOn: ['db'] } },
    }
    const route: RouteConfig = {
      ...ROUTE,
      match: { hosts: ['*.example.com'], path: '/api/orders/*', methods: ['GET'], headers: { 'X-Version': '2' } },
      rewrite: { stripPrefix: '/API', addPrefix: '/v2', host: 'shop.internal:81' },
      resource: 'orders',
      auth: 'required',
      charge: { refund: [304, '5xx'] },
      blockAfter: { responses: 5, within: '1m', blockFor: '1h', statuses: [401, 422] },
      denial: { status: 503, contentType: 'text/html; charset=utf-8', body: 'file:busy.html' },
      webSocket: { messagesPerSecond: 10, bytesPerSecond: 1000, burst: 2 },
      retries: { attempts: 0, statuses: [], budget: 0 },
      priority: 3,
    }
    const shop: UpstreamConfig = {
      instances: [{ url: 'https://shop.internal', weight: 2 }, { url: 'https://[2001:db8::1]:8443' }],
      balance: 'hash',
      hashBy: 'cookie:session',
      protocol: 'http1',
      tls: { serverName: 'shop' },
      health: { active: { path: '/health', interval: '5s' }, passive: { failures: 3, pause: '5s' } },
      slowStart: '30s',
      concurrency: { mode: 'adaptive', min: 1, max: 50 },
      connections: 10,
      allowAddresses: ['169.254.0.0/16'],
      resolveEvery: '1m',
    }
    const config: GatewayConfig = { gateway, routes: [route], upstreams: { shop } }
    expect(problemsOf(config)).toEqual([])
    expect(problemsOf({})).toEqual([])
  })

  it('is checked as a whole: all problems at once', () => {
    const found = problemsOf({
      gateway: { accesLog: 'json' },
      routes: [
        { name: 'a', match: { path: 'x' }, upstream: 'shop' },
        { ...ROUTE, upstream: 'shpo' },
      ],
      upstreams: { shop: { instances: [] }, mail: { instances: [{ url: 'ftp://x' }] } },
    })
    expect(found.map(({ path }) => path).sort()).toEqual([
      '/gateway/accesLog',
      '/routes/0/match/path',
      '/routes/1/upstream',
      '/upstreams/mail/instances/0/url',
      '/upstreams/shop/instances',
    ])
  })

  it.each<[string, object, string, string, string]>([
    ['an unknown upstream', { upstream: 'shp' }, '/upstream', '"shp"', 'did you mean "shop"?'],
    ['an upstream far from any', { upstream: 'zzzzzz' }, '/upstream', '"zzzzzz"', 'there are shop'],
    ['a typo', { uptream: 'shop' }, '/uptream', 'an unknown property', 'did you mean "upstream"?'],
    ['a wrong choice', { auth: 'require' }, '/auth', '"require"', 'did you mean "required"?'],
    ['auth without identities', { auth: 'required' }, '/auth', '"required"', 'consumers or jwt'],
    ['a bad pattern', { match: { path: '/a/**' } }, '/match/path', '"/a/**"', '"/*" at the end'],
    ['a bad host', { match: { hosts: ['x.com:80'] } }, '/match/hosts/0', '"x.com:80"', 'without port'],
    ['a bad resource', { resource: '/a/:id' }, '/resource', '"/a/:id"', 'without "*" and parameters'],
    ['refund and only', { charge: { refund: ['5xx'], only: [401] } }, '/charge/only', 'beside "refund"', 'one of'],
    ['a bad class', { charge: { refund: ['6xx'] } }, '/charge/refund/0', '"6xx"', 'a class such as "5xx"'],
    [
      'a block by 5xx',
      { blockAfter: { responses: 1, within: '1m', blockFor: '1m', statuses: [401, 503] } },
      '/blockAfter/statuses/1',
      '503',
      'a status below 500',
    ],
    ['no duration', { timeouts: { headers: '0s' } }, '/timeouts/headers', '"0s"', 'above 0'],
    ['a missing page', { denial: { body: 'file:bsy.html' } }, '/denial/body', 'missing', 'a file that exists'],
    ['limits off and a charge', { limits: 'off', charge: { only: [401] } }, '/charge', 'limits: off', 'one of'],
    [
      'a type without a page',
      { denial: { contentType: 'text/html' } },
      '/denial/contentType',
      'without a body',
      'body',
    ],
    ['a health path', { match: { path: '/readyz' } }, '/match/path', '"/readyz"', 'healthPaths without this one'],
    ['a retried success', { retries: { statuses: [503, 304] } }, '/retries/statuses/1', '304', '400 or more'],
    ['a foreign prefix', { rewrite: { stripPrefix: '/api' } }, '/rewrite/stripPrefix', '"/api"', 'begins with it'],
  ])('rejects %s of a route', (_, route, path, received, expected) => {
    expect(withRoute(route)).toEqual([
      {
        path: `/routes/0${path}`,
        received: expect.stringContaining(received),
        expected: expect.stringContaining(expected),
      },
    ])
  })

  it.each<[string, object, string, string, string]>([
    ['no instances', { instances: [] }, '/instances', 'an empty list', 'not empty'],
    ['a path', { instances: [{ url: 'http://a/b' }] }, '/instances/0/url', '"http://a/b"', 'without a path'],
    ['credentials', { instances: [{ url: 'http://u:p@a' }] }, '/instances/0/url', 'credentials', 'without'],
    ['no URL', { instances: [{ url: 'shop:3000' }] }, '/instances/0/url', '"shop:3000"', 'a URL such as'],
    [
      'an instance twice',
      { instances: [{ url: 'http://a' }, { url: 'http://A:80' }] },
      '/instances/1/url',
      '"http://a"',
      '/upstreams/shop/instances/0/url has it already',
    ],
    [
      'a metadata service',
      { instances: [{ url: 'http://169.254.169.254' }] },
      '/instances/0/url',
      '"http://169.254.169.254"',
      '"169.254.169.254" in allowAddresses',
    ],
    [
      'a metadata service in another spelling',
      { instances: [{ url: 'http://0xa9fea9fe' }] },
      '/instances/0/url',
      '"http://0xa9fea9fe"',
      '"169.254.169.254" in allowAddresses',
    ],
    [
      'a link-local address',
      { instances: [{ url: 'http://[fe80::1]:81' }], allowAddresses: ['169.254.0.0/16'] },
      '/instances/0/url',
      'fe80::1',
      'link-local',
    ],
    ['a weight of 0', { instances: [{ url: 'http://a', weight: 0 }] }, '/instances/0/weight', '0', 'above 0'],
    ['hash without hashBy', { balance: 'hash' }, '/hashBy', 'missing', '"cookie:NAME"'],
    ['a session without its cookie', { balance: 'hash', hashBy: 'session' }, '/sessionCookie', 'missing', 'cookie'],
    ['a cookie without a session', { sessionCookie: 'sid' }, '/sessionCookie', 'no hashBy', '"hashBy: session"'],
    ['hashBy without hash', { hashBy: 'user' }, '/hashBy', 'beside no balance', '"balance: hash"'],
    ['a fixed limit of nothing', { concurrency: { mode: 'fixed' } }, '/concurrency/limit', 'missing', 'mode: fixed'],
    ['a limit for nothing', { concurrency: { limit: 5 } }, '/concurrency/limit', 'mode: off', '"mode: fixed"'],
    ['bad bounds', { concurrency: { mode: 'adaptive', min: 9, max: 5 } }, '/concurrency/min', '9', 'at most max'],
    ['a bad network', { allowAddresses: ['10.0.0.1/8'] }, '/allowAddresses/0', '"10.0.0.1/8"', '10.0.0.0/8'],
    ['a long pause', { health: { passive: { pause: '61s' } } }, '/health/passive/pause', '"61s"', 'at most 1 minute'],
    ['late failures', { health: { passive: { failures: 1001 } } }, '/health/passive/failures', '1001', 'to 1000'],
    ['tls without https', { tls: { serverName: 'a' } }, '/tls', 'no instance has https', 'https://'],
  ])('rejects %s of an upstream', (_, upstream, path, received, expected) => {
    expect(withUpstream(upstream)).toEqual([
      {
        path: `/upstreams/shop${path}`,
        received: expect.stringContaining(received),
        expected: expect.stringContaining(expected),
      },
    ])
  })

  it.each<[string, object, string, string, string]>([
    ['a bad network', { trustedProxies: ['10.0.0.0/33'] }, '/trustedProxies/0', '"10.0.0.0/33"', 'prefix'],
    ['a key as it is', { consumers: [{ name: 'a', keys: ['k'] }] }, '/consumers/0/keys/0', '"k"', 'sha256:'],
    ['no key set', { jwt: { issuer: 'a' } }, '/jwt/jwks', 'missing', 'a non-empty string'],
    ['a missing key set', { jwt: { jwks: 'k.json' } }, '/jwt/jwks', 'missing', 'a file that exists'],
    ['a key set without keys', { jwt: { jwks: 'no-keys.json' } }, '/jwt/jwks', 'not a key set', '"keys"'],
    [
      'no signature',
      { jwt: { jwks: 'https://a', algorithms: ['none'] } },
      '/jwt/algorithms/0',
      '"none"',
      'a public key',
    ],
    [
      'a shared secret',
      { jwt: { jwks: 'https://a', algorithms: ['HS256'] } },
      '/jwt/algorithms/0',
      '"HS256"',
      'public',
    ],
    [
      'a header with spaces',
      { consumers: [CONSUMER], keyHeaders: ['X Key'] },
      '/keyHeaders/0',
      '"X Key"',
      'the name of a header',
    ],
    ['an identity header', { identityHeaders: { user: '' } }, '/identityHeaders/user', '""', 'the name of a header'],
    ['a key header without keys', { keyHeaders: ['X-Key'] }, '/keyHeaders', 'without consumers', 'consumers beside it'],
    [
      'a forwarding header of nobody',
      { forwardedHeader: 'Forwarded' },
      '/forwardedHeader',
      'without',
      'trustedProxies',
    ],
    ['an identity in framing', { identityHeaders: { user: 'Content-Length' } }, '/identityHeaders/user', 'Len', 'mean'],
    [
      'two identities in one',
      { identityHeaders: { user: 'x-tier' } },
      '/identityHeaders/tier',
      '"x-tier"',
      'user has it',
    ],
    ['keys in cookies', { consumers: [CONSUMER], keyHeaders: ['cookie'] }, '/keyHeaders/0', '"cookie"', 'meaning'],
    [
      'a forwarding header',
      { trustedProxies: ['10.0.0.1'], forwardedHeader: 'a:b' },
      '/forwardedHeader',
      '"a:b"',
      'the name of a header',
    ],
    [
      'an unknown service',
      { services: { a: { url: 'tcp://h:1', dependsOn: ['bb'] }, b: { url: 'tcp://h:2' } } },
      '/services/a/dependsOn/0',
      '"bb"',
      'did you mean "b"?',
    ],
    ['a service without port', { services: { a: { url: 'tcp://h' } } }, '/services/a/url', '"tcp://h"', 'its port'],
  ])('rejects %s of the gateway', (_, options, path, received, expected) => {
    expect(withOptions(options)).toEqual([
      {
        path: `/gateway${path}`,
        received: expect.stringContaining(received),
        expected: expect.stringContaining(expected),
      },
    ])
  })

  it('names a cycle of services, and nothing else', () => {
    const services = {
      'a 1': { url: 'tcp://h:1', dependsOn: ['b'] },
      b: { url: 'tcp://h:2', dependsOn: ['c'] },
      c: { url: 'tcp://h:3', dependsOn: ['a 1'] },
    }
    expect(withOptions({ services })).toEqual([
      {
        path: '/gateway/services/a 1/dependsOn',
        received: 'a cycle: a 1 -> b -> c -> a 1',
        expected: 'no service before itself',
      },
    ])
  })

  it('takes link-local addresses that it allows, and private ones', () => {
    const urls = ['http://169.254.1.7', 'http://[fe80::1]:81', 'http://10.0.0.7', 'http://127.0.0.1:1', 'http://[::1]']
    const instances = urls.map((url) => ({ url }))
    expect(withUpstream({ instances, allowAddresses: ['169.254.1.0/24', 'fe80::1'] })).toEqual([])
  })

  it('rejects a consumer name or key that comes twice', () => {
    const keys = [`sha256:${'a'.repeat(64)}`]
    const found = withOptions({
      consumers: [
        { name: 'a', keys },
        { name: 'a', keys },
      ],
    })
    expect(found.map(({ path, expected }) => [path, expected])).toEqual([
      ['/gateway/consumers/1/name', 'a name of its own: /gateway/consumers/0/name has it already'],
      ['/gateway/consumers/1/keys/0', 'a key that no other consumer has: /gateway/consumers/0/keys/0 has it already'],
    ])
  })
})

describe('routes', () => {
  const twoRoutes = (one: object, other: object) =>
    problemsOf({
      routes: [
        { ...ROUTE, match: one },
        { ...ROUTE, name: 'other', match: other },
      ],
      upstreams: { shop: SHOP },
    })

  it('have no time limit for connecting: connections are those of all routes', () => {
    expect(problemsOf({ routes: [{ ...ROUTE, timeouts: { connect: '1s' } }], upstreams: { shop: SHOP } })).toEqual([
      { path: '/routes/0/timeouts/connect', received: 'an unknown property', expected: 'only headers, idle, total' },
    ])
  })

  it('have no limits of WebSockets with an upstream that speaks HTTP/2', () => {
    const routes = [{ ...ROUTE, webSocket: { messagesPerSecond: 5 } }]
    expect(problemsOf({ routes, upstreams: { shop: { ...SHOP, protocol: 'http2' } } })).toEqual([
      {
        path: '/routes/0/webSocket',
        received: 'given for the upstream "shop" with "protocol: http2"',
        expected: expect.stringContaining('not opened over HTTP/2'),
      },
    ])
  })

  it('have names of their own', () => {
    expect(problemsOf({ routes: [ROUTE, { ...ROUTE, match: { path: '/x' } }], upstreams: { shop: SHOP } })).toEqual([
      { path: '/routes/1/name', received: '"orders"', expected: 'a name of its own: /routes/0/name has it already' },
    ])
  })

  it.each([
    [{ path: '/a/:id' }, { path: '/A//:other/' }],
    [
      { path: '/a', methods: ['get', 'POST'] },
      { path: '/a', methods: ['POST', 'GET'] },
    ],
    [{ hosts: ['a.com', 'b.com'] }, { hosts: ['B.com'] }],
    [{ headers: { 'X-A': '1' } }, { headers: { 'x-a': '1' } }],
    [{}, { path: undefined }],
  ])('%j and %j are the same, and the second can never be used', (one, other) => {
    expect(twoRoutes(one, other)).toEqual([
      {
        path: '/routes/1/match',
        received: 'the same as that of /routes/0',
        expected: expect.stringContaining('its own'),
      },
    ])
  })

  it.each([
    [{ path: '/a/:id' }, { path: '/a/*' }],
    [{ path: '/a' }, { path: '/a', methods: ['GET'] }],
    [{ hosts: ['a.com'] }, { hosts: ['a.com', 'b.com'] }],
    [{ headers: { 'x-a': '1' } }, { headers: { 'x-a': '2' } }],
    [{}, { path: '/*' }],
  ])('%j and %j are not', (one, other) => {
    expect(twoRoutes(one, other)).toEqual([])
  })
})

describe('certificates', () => {
  it('exist, can be read and have their own keys', async () => {
    for (const name of ['one', 'other']) mkdirSync(join(folder, name))
    const one = await makeCertificate(join(folder, 'one'))
    const other = await makeCertificate(join(folder, 'other'))
    const good = { cert: 'one/certificate.pem', key: 'one/key.pem' }
    const certificates = [
      good,
      { cert: one.certificateFile, key: other.keyFile },
      { cert: 'text.pem', key: 'text.pem' },
      { cert: 'none.pem', key: one.keyFile },
    ]
    const found = withOptions({ tls: { certificates } })
    expect(found.map(({ path, received }) => [path, received.replace(/ \(.*/, '')])).toEqual([
      ['/gateway/tls/certificates/1/key', 'the key of another certificate'],
      ['/gateway/tls/certificates/2/cert', 'not a certificate'],
      ['/gateway/tls/certificates/2/key', 'not a private key'],
      ['/gateway/tls/certificates/3/cert', 'a file that cannot be read'],
    ])
    const instances = [{ url: 'https://a' }]
    expect(withUpstream({ instances, tls: { ca: one.certificateFile, ...good } })).toEqual([])
    expect(withUpstream({ instances, tls: { ca: 'text.pem' } }).map(({ path }) => path)).toEqual([
      '/upstreams/shop/tls/ca',
    ])
  })
})
