import { describe, expect, it } from 'vitest'
import { testSettings } from './service.fixture.ts'
import type { Settings } from './settings/settings.ts'
import type { StartupFacts } from './startup-message.ts'
import { startupMessage } from './startup-message.ts'

const RULES: NonNullable<StartupFacts['rules']> = { enforcedVersion: 1, source: 'database' }

function message(settings: Partial<Settings> = {}, facts: Partial<StartupFacts> = {}): string {
  return startupMessage({
    settings: testSettings(settings),
    ports: { http: 8080 },
    rules: RULES,
    reasons: [],
    ...facts,
  })
}

const REDIS = {
  isCluster: false,
  sentinel: undefined,
  prefix: 'sluice',
  leases: false,
  failureMode: 'open',
  deadlineMs: 50,
} as const

describe('the start message', () => {
  it('shows where Envoy can call, and what it needs', () => {
    const tls = { cert: 'cert.pem', key: 'key.pem', clientCa: 'ca.pem' }
    const grpc = { port: 8081, tls: undefined, deadlineMs: 15 }
    const ports = { http: 8080, grpc: 8081 }
    expect(message({ grpc }, { ports })).toContain('  Envoy       grpc://127.0.0.1:8081 (no API key needed)\n')
    expect(message({ grpc: { ...grpc, tls } }, { ports })).toContain(
      '  Envoy       grpcs://127.0.0.1:8081 (client certificate needed)\n',
    )
  })

  it('shows all URLs, where state is kept, who can connect, and commands to try', () => {
    expect(message().split('\n')).toEqual([
      'Sluice is running.',
      '  dashboard   http://127.0.0.1:8080/',
      '  check API   http://127.0.0.1:8080/internal/ratelimit/check',
      '  admin API   http://127.0.0.1:8080/admin (needs an API key)',
      '  OpenAPI     http://127.0.0.1:8080/openapi.json',
      '  metrics     http://127.0.0.1:8080/metrics',
      '  health      http://127.0.0.1:8080/livez and http://127.0.0.1:8080/readyz',
      '  counters    in memory',
      '  rules       version 1, from SQLite in .sluice',
      '  listening   localhost only (set HOST=0.0.0.0 to expose)',
      'Try it:',
      "  curl -i http://127.0.0.1:8080/internal/ratelimit/check -H 'Content-Type: application/json' -d " +
        `'{"userId":"user-123","resource":"/api/v1/data"}'`,
      'Try a denial, the second of these two calls:',
      "  curl -s -w '%{http_code}\\n' http://127.0.0.1:8080/internal/ratelimit/check " +
        "http://127.0.0.1:8080/internal/ratelimit/check -H 'Content-Type: application/json' -d " +
        `'{"userId":"user-123","resource":"/api/v1/data","tokens":60}'`,
    ])
  })

  it('promises a denial only by the rules of the first start', () => {
    expect(message({ rulesFile: 'sluice.yaml' })).not.toContain('denial')
    expect(message({}, { rules: { source: 'database', enforcedVersion: 2 } })).not.toContain('denial')
    expect(message({}, { rules: undefined })).not.toContain('denial')
  })

  it('shows the address of every listener, and what its clients need', () => {
    const tls = { cert: 'c', key: 'k', clientCa: undefined }
    const line = (settings: Partial<Settings>): string | undefined =>
      message(settings, { ports: { http: 8080, resp: 6380 } })
        .split('\n')
        .find((text) => text.includes('redis'))
    expect(line({})).toBeUndefined()
    expect(line({ resp: { port: 0, tls: undefined } })).toBe('  Redis       redis://127.0.0.1:6380 (no API key needed)')
    expect(line({ resp: { port: 0, tls }, checkKey: true, host: '0.0.0.0' })).toBe(
      '  Redis       rediss://127.0.0.1:6380 (API key needed)',
    )
    expect(line({ resp: { port: 0, tls: { ...tls, clientCa: 'a' } }, checkKey: true })).toContain(
      '(client certificate needed)',
    )
  })

  it('shows the gateway, and without routes a command that shows denied requests', () => {
    const lines = (settings: Partial<Settings>): readonly string[] =>
      message(settings, { ports: { http: 8080, gateway: 8000 } })
        .split('\n')
        .filter((text) => text.includes('8000'))
    expect(lines({})).toEqual([])
    const gateway = { port: 0, hasRoutes: true, isTls: true }
    expect(lines({ gateway, rulesFile: 'sluice.yaml', host: '0.0.0.0' })).toEqual([
      '  gateway     https://127.0.0.1:8000 (routes of sluice.yaml)',
    ])
    const elsewhere = { ...gateway, host: '192.0.2.7' }
    expect(lines({ gateway: elsewhere, rulesFile: 'sluice.yaml' })[0]).toBe(
      '  gateway     https://192.0.2.7:8000 (routes of sluice.yaml)',
    )
    expect(lines({ gateway: { ...elsewhere, hasRoutes: false } })[1]).toContain("'http://192.0.2.7:8000/orders")
    expect(lines({ gateway: { port: 0, hasRoutes: false, isTls: false } })).toEqual([
      '  gateway     http://127.0.0.1:8000 (demo upstream, until sluice.yaml has routes)',
      "  curl -s -o /dev/null -w '%{http_code}\\n' -H 'X-API-Key: demo' 'http://127.0.0.1:8000/orders?n=[1-105]' | " +
        'sort | uniq -c',
    ])
  })

  it('shows TLS of HTTP, and the admin API where it has a listener of its own', () => {
    const httpTls = { cert: 'c', key: 'k', clientCa: undefined }
    const admin = { port: 9090, host: '127.0.0.1', checkKey: false }
    const ports = { http: 8443, admin: 9090 }
    const text = message({ host: '192.0.2.7', checkKey: true, httpTls, admin }, { ports })
    expect(text).toContain('  check API   https://192.0.2.7:8443/internal/ratelimit/check\n')
    expect(text).toContain('  admin API   https://127.0.0.1:9090/admin (needs an API key)\n')
    expect(text).toContain('  metrics     https://127.0.0.1:9090/metrics\n')
    expect(text).toContain('  health      https://192.0.2.7:8443/livez and https://192.0.2.7:8443/readyz\n')
    expect(text).toContain('  listening   192.0.2.7; the check API needs an API key')
    expect(message({ httpTls: { ...httpTls, clientCa: 'a' }, host: '::' })).toContain(
      'every client needs a certificate',
    )
    expect(
      message({ resp: { port: 0, host: '0.0.0.0', checkKey: true, tls: undefined } }, { ports: { resp: 1 } }),
    ).toContain('  listening   localhost, and 0.0.0.0 (resp; API key needed)\n')
    const resp = { port: 0, host: '127.0.0.1', checkKey: false, tls: undefined }
    expect(message({ resp, host: '0.0.0.0', checkKey: true }, { ports: { http: 1, resp: 2 } })).toMatch(
      / {2}listening {3}0\.0\.0\.0; the check API needs an API key .*; 127\.0\.0\.1 \(resp; no API key needed\)\n/,
    )
  })

  it('shows locations without secrets', () => {
    const urls = ['redis://user:hunter2@one:6379/3', 'redis://user:hunter2@two:6379/3']
    const text = message({
      redis: { ...REDIS, urls },
      databaseUrl: 'postgres://user:hunter2@db:5432/sluice?password=hunter2',
    })
    expect(text).toContain('  counters    in Redis at redis://one:6379/3, redis://two:6379/3\n')
    expect(text).toContain('  rules       version 1, from postgres://db:5432/sluice\n')
    expect(text).not.toContain('hunter2')
  })

  it('shows threads, the rules file, and missing rules', () => {
    const text = message({ threads: 4, rulesFile: 'sluice.yaml' })
    expect(text).toContain('in memory, shared by 4 threads')
    expect(text).toContain('  rules       version 1, from sluice.yaml\n')
    const settings = testSettings()
    expect(startupMessage({ settings, ports: { http: 1 }, rules: undefined, reasons: [] })).toContain('none yet')
    expect(message({}, { rules: { source: 'none', enforcedVersion: undefined } })).toContain('none yet')
  })

  it('shows that rules are from the copy on disk while the database is unreachable', () => {
    const databaseUrl = 'postgres://user:hunter2@db:5432/sluice'
    expect(message({ databaseUrl }, { rules: { enforcedVersion: 1, source: 'disk' } })).toContain(
      '  rules       version 1, from the copy in .sluice\n',
    )
  })

  it('shows every problem before the command to try', () => {
    const reasons = [
      { code: 'redis-unreachable', message: 'Redis is unreachable. Do this.' },
      { code: 'version-refused', message: 'Version 2 cannot be used. Do that.' },
    ] as const
    expect(message({}, { reasons })).toContain(
      '\n  WARNING     Redis is unreachable. Do this.\n  WARNING     Version 2 cannot be used. Do that.\nTry it:\n',
    )
  })

  it.each([
    ['0.0.0.0', 'http://127.0.0.1:8080/', '0.0.0.0; the check API'],
    ['::', 'http://[::1]:8080/', '::; the check API'],
    ['::1', 'http://[::1]:8080/', 'localhost only (set HOST=0.0.0.0 to expose)'],
    ['localhost', 'http://localhost:8080/', 'localhost only (set HOST=0.0.0.0 to expose)'],
    ['192.0.2.7', 'http://192.0.2.7:8080/', '192.0.2.7; the check API'],
  ])('on %s shows reachable URLs and who can connect', (host, address, listening) => {
    expect(message({ host })).toContain(address)
    expect(message({ host })).toContain(`  listening   ${listening}`)
  })

  it('shows whether the check API needs a key when exposed, and uses one in the example', () => {
    const withKey = message({ host: '0.0.0.0', checkKey: true })
    expect(withKey).toContain('; the check API needs an API key (--no-check-key to disable)\n')
    expect(withKey).toContain(' -H "Authorization: Bearer $SLUICE_API_KEY" ')
    const without = message({ host: '0.0.0.0', checkKey: false })
    expect(without).toContain('; the check API needs no API key (--check-key to require one)\n')
    expect(without).not.toContain('Authorization')
  })
})
