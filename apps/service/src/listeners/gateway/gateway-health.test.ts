import { describe, expect, it } from 'vitest'
import type { ThreadGateway, ThreadUpstream } from '../../observability/gateway-status.ts'
import { mergedGateway } from '../../observability/gateway-status.ts'
import { gatewayHealth } from './gateway-health.ts'

type Instance = ThreadUpstream['instances'][number]

function instance(fields: Partial<Instance> = {}): Instance {
  return {
    instance: 'http://a:1',
    url: 'http://a:1',
    health: 'healthy',
    breaker: 'closed',
    inFlight: 1,
    weight: 2,
    concurrencyLimit: undefined,
    requests: 10,
    failures: 1,
    ...fields,
  }
}

function upstream(fields: Partial<ThreadUpstream> = {}): ThreadUpstream {
  return {
    name: 'shop',
    isAvailable: true,
    instances: [instance()],
    unresolved: [],
    retries: { taken: 0, denied: 0 },
    turnedAway: { noHealthyInstance: 0, noCapacity: 0 },
    ...fields,
  }
}

function thread(fields: Partial<ThreadGateway> = {}): ThreadGateway {
  return {
    mode: 'routes',
    routes: [{ name: 'orders', path: '/orders/*', upstream: 'shop', auth: 'optional', limited: true }],
    upstreams: [upstream()],
    waitingFor: [],
    wasReady: false,
    keySet: undefined,
    problem: undefined,
    ...fields,
  }
}

describe('gateways of several threads', () => {
  it('are one: counts are added up, states are the worst of them', () => {
    const worse = instance({ health: 'unhealthy', breaker: 'open', inFlight: 3, concurrencyLimit: 7.9, failures: 4 })
    const merged = mergedGateway([
      thread(),
      thread({
        upstreams: [upstream({ isAvailable: false, instances: [worse, instance({ instance: 'http://b:1' })] })],
      }),
      thread({ upstreams: [upstream({ instances: [instance({ breaker: 'half-open', concurrencyLimit: 4 })] })] }),
    ])
    expect(merged).toEqual({
      mode: 'routes',
      threads: 3,
      routes: thread().routes,
      upstreams: [
        {
          name: 'shop',
          available: false,
          unresolved: [],
          instances: [
            {
              ...{ instance: 'http://a:1', health: 'unhealthy', breaker: 'open', inFlight: 5, weight: 2 },
              ...{ requests: 30, failures: 6, concurrencyLimit: 11 },
            },
            {
              ...{ instance: 'http://b:1', health: 'healthy', breaker: 'closed', inFlight: 1, weight: 2 },
              ...{ requests: 10, failures: 1 },
            },
          ],
        },
      ],
      waitingFor: [],
    })
  })

  it('say what any of them waits for, and what is wrong in any', () => {
    const keySet = { keys: 2, loadedAtMs: 2000.5, failures: 0, problem: undefined }
    const unresolved = [{ url: 'http://x', problem: 'ENOTFOUND' }]
    const merged = mergedGateway([
      thread({ waitingFor: ['db'], keySet, upstreams: [upstream({ unresolved })] }),
      thread({
        ...{ waitingFor: ['db', 'shop'], problem: 'no such file' },
        keySet: { ...keySet, loadedAtMs: 1000, problem: 'down' },
        upstreams: [upstream({ unresolved })],
      }),
    ])
    expect(merged).toMatchObject({
      waitingFor: ['db', 'shop'],
      problem: 'no such file',
      keySet: { keys: 2, loadedAt: 1000, problem: 'down' },
      upstreams: [{ unresolved: ['http://x: ENOTFOUND'] }],
    })
    const never = mergedGateway([thread({ keySet: { ...keySet, keys: 0, loadedAtMs: undefined } })])
    expect(never.keySet).toEqual({ keys: 0 })
  })

  it('are off when there is none', () => {
    expect(mergedGateway([])).toEqual({ mode: 'off', threads: 0, routes: [], upstreams: [], waitingFor: [] })
  })
})

describe('the readiness of a gateway', () => {
  it('says what it serves', () => {
    expect(gatewayHealth(thread())).toEqual({
      name: 'gateway',
      ready: true,
      detail: '1 route to 1 upstream',
      reasons: [],
    })
    expect(gatewayHealth(thread({ mode: 'demo' }))).toMatchObject({ detail: 'demo upstream: no routes are configured' })
  })

  it('is missing while it waits, and degraded by what is wrong later', () => {
    expect(gatewayHealth(thread({ waitingFor: ['the upstream "shop"'] }))).toMatchObject({
      ready: false,
      detail: '1 route to 1 upstream; waiting for the upstream "shop"',
      reasons: [{ code: 'gateway-waiting' }],
    })
    // Of a service that a later configuration names.
    expect(gatewayHealth(thread({ waitingFor: ['the service "mail"'], wasReady: true }))).toMatchObject({
      ready: true,
      reasons: [{ code: 'gateway-waiting' }],
    })
    const down = thread({
      upstreams: [upstream({ isAvailable: false }), upstream({ name: 'blog' })],
      keySet: { keys: 0, loadedAtMs: undefined, failures: 3, problem: 'connection refused' },
      problem: 'secret path',
    })
    const { ready, reasons = [] } = gatewayHealth(down)
    expect([ready, reasons.map(({ code }) => code)]).toEqual([
      true,
      ['upstream-unavailable', 'token-keys-unavailable', 'gateway-config-refused'],
    ])
    const text = reasons.map(({ message }) => message).join('\n')
    expect(text).toContain('No instance takes requests in "shop".')
    expect(text).toContain('connection refused. Tokens are answered with 503.')
    // Health is public, files are not.
    expect(text).not.toContain('secret path')
  })
})
