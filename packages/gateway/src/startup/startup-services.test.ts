import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { StartupServiceConfig } from '../config/gateway-config.ts'
import { configOf, routeOf, startGateway, startUpstream } from '../gateway.test.support.ts'
import { networkProbe, type ServiceProbe, StartupServices } from './startup-services.ts'

/** Services of which a test says which are available. */
function fakeServices(services: Readonly<Record<string, StartupServiceConfig>>, probe?: ServiceProbe) {
  const timers = new FakeTimers(new FakeClock())
  const available = new Set<string>()
  const asked: string[] = []
  const lines: string[] = []
  const startup = new StartupServices(services, {
    timers,
    random: seededRandom(3),
    log: {
      info: (message, fields) => void lines.push(`${message}: ${fields?.['service']}`),
      warn: (message, fields) => void lines.push(`${message}: ${fields?.['service']}, ${fields?.['problem']}`),
    },
    probe:
      probe ??
      (({ hostname }) => {
        asked.push(hostname)
        return available.has(hostname) ? Promise.resolve() : Promise.reject(new Error('connect ECONNREFUSED'))
      }),
  })
  return { startup, timers, available, asked, lines }
}

const CHAIN = {
  orders: { url: 'http://orders/health', dependsOn: ['database', 'cache'] },
  database: { url: 'tcp://database:5432' },
  cache: { url: 'tcp://cache:6379', dependsOn: ['database'] },
}

describe('services of another configuration', () => {
  it('are waited for, unless they were available already', async () => {
    const { startup, timers, available, asked } = fakeServices({ database: { url: 'tcp://database:5432' } })
    available.add('database')
    await Promise.all([startup.wait(), timers.advance(1)])
    const parts = { timers, random: seededRandom(3), log: { info: () => undefined, warn: () => undefined } }
    const probe: ServiceProbe = ({ hostname }) => {
      asked.push(hostname)
      return Promise.resolve()
    }
    const services = {
      database: { url: 'tcp://database:5432' },
      mail: { url: 'tcp://mail:25', dependsOn: ['database'] },
    }
    const next = new StartupServices(services, { ...parts, probe }, startup)
    expect(next.awaited().map(({ name }) => name)).toEqual(['mail'])
    await next.wait()
    const moved = new StartupServices({ database: { url: 'tcp://other:5432' } }, { ...parts, probe }, next)
    expect(moved.awaited().map(({ name }) => name)).toEqual(['database'])
    await moved.wait()
    expect(asked).toEqual(['database', 'mail', 'other'])
  })

  it('are reported and leave a gateway ready that was ready, also if they never come', async () => {
    const app = await startUpstream()
    const services = { mail: { url: `tcp://127.0.0.1:${await freePort()}` } }
    const config = configOf([routeOf()], { app: [app.url] })
    const { gateway } = await startGateway({ config })
    expect([gateway.isReady, gateway.awaitedServices]).toEqual([true, []])
    await gateway.use({ ...config, options: { services } })
    expect([gateway.isReady, gateway.awaitedServices.map(({ name }) => name)]).toEqual([true, ['mail']])
    await gateway.use(config)
    expect(gateway.awaitedServices).toEqual([])
    const cycle = { a: { url: 'tcp://a:1', dependsOn: ['a'] } }
    await expect(gateway.use({ ...config, options: { services: cycle } })).rejects.toThrow(/a/)
    expect(gateway.isReady).toBe(true)
  })

  it('replace those that a gateway that was not ready yet waits for', async () => {
    const app = await startUpstream()
    const config = configOf([routeOf()], { app: [app.url] })
    const missing = { mail: { url: `tcp://127.0.0.1:${await freePort()}` } }
    const { gateway } = await startGateway({ config: { ...config, options: { services: missing } } })
    expect(gateway.isReady).toBe(false)
    const services = { mail: { url: `tcp://127.0.0.1:${app.port}` } }
    await gateway.use({ ...config, options: { services } })
    await expect.poll(() => gateway.isReady).toBe(true)
  })
})

describe('services before the gateway', () => {
  it('are waited for in the order of their dependencies', async () => {
    const { startup, timers, available, asked, lines } = fakeServices(CHAIN)
    let isReady = false
    const waiting = startup.wait().then(() => {
      isReady = true
    })
    await timers.advance(1000)
    expect(new Set(asked)).toEqual(new Set(['database']))
    expect(startup.awaited()).toEqual([
      { name: 'orders', url: 'http://orders/health', problem: undefined },
      { name: 'database', url: 'tcp://database:5432', problem: 'connect ECONNREFUSED' },
      { name: 'cache', url: 'tcp://cache:6379', problem: undefined },
    ])
    available.add('database').add('orders')
    await timers.advance(6000)
    expect(new Set(asked)).toEqual(new Set(['database', 'cache']))
    expect(isReady).toBe(false)
    available.add('cache')
    await timers.advance(6000)
    await waiting
    expect(startup.awaited()).toEqual([])
    expect(asked.at(-1)).toBe('orders')
    expect(lines).toEqual([
      'waiting for a service: database, connect ECONNREFUSED',
      'service is available: database',
      'waiting for a service: cache, connect ECONNREFUSED',
      'service is available: cache',
      'service is available: orders',
    ])
    expect(timers.pending).toBe(0)
  })

  it('are polled less and less often, at least every 5 seconds', async () => {
    const { startup, timers, asked } = fakeServices({ database: { url: 'tcp://database:5432' } })
    const waiting = startup.wait()
    await timers.advance(60_000)
    // 250 ms, doubling to 5 s: 5 questions in the first 8 seconds, then one every 5 seconds or so.
    expect(asked.length).toBeGreaterThanOrEqual(15)
    expect(asked.length).toBeLessThanOrEqual(19)
    await startup.close()
    await expect(waiting).rejects.toThrow()
    expect(timers.pending).toBe(0)
  })

  it('that do not answer are polled again after 2 seconds', async () => {
    const { startup, timers, lines } = fakeServices(
      { database: { url: 'tcp://database:5432' } },
      (_url, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    const waiting = startup.wait()
    await timers.advance(2000)
    expect(lines).toEqual(['waiting for a service: database, no answer within 2000 ms'])
    await startup.close()
    await expect(waiting).rejects.toThrow()
  })

  it('that depend on each other are named', () => {
    const services = { a: { url: 'tcp://a:1', dependsOn: ['b'] }, b: { url: 'tcp://b:1', dependsOn: ['a'] } }
    expect(() => fakeServices(services)).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_GRAPH_CYCLE' }))
    expect(() => fakeServices(services)).toThrow(/a -> b -> a|b -> a -> b/)
  })
})

describe('the probe', () => {
  const probe = networkProbe(async () => ['127.0.0.1'])
  const ask = (url: string) => probe(new URL(url), new AbortController().signal)

  it('takes 2xx of an HTTP service for available, and nothing else', async () => {
    let status = 200
    const server = createServer((request, response) =>
      response.writeHead(request.url === '/up?now' ? status : 404).end(),
    )
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    onTestFinished(() => new Promise((done) => void server.close(() => done())))
    const { port } = server.address() as AddressInfo
    await ask(`http://127.0.0.1:${port}/up?now`)
    await ask(`http://orders.invalid:${port}/up?now`)
    status = 302
    await expect(ask(`http://127.0.0.1:${port}/up?now`)).rejects.toThrow('status 302')
    await expect(ask(`http://127.0.0.1:${port}/`)).rejects.toThrow('status 404')
  })

  it('takes an accepted connection of a TCP service for available', async () => {
    const server = createTcpServer((socket) => socket.destroy())
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    onTestFinished(() => new Promise((done) => void server.close(() => done())))
    await ask(`tcp://127.0.0.1:${(server.address() as AddressInfo).port}`)
    await expect(ask(`tcp://127.0.0.1:${await freePort()}`)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('does not ask metadata services', async () => {
    await expect(ask('http://169.254.169.254/latest')).rejects.toMatchObject({ code: 'SLUICE_GATEWAY_DENIED_ADDRESS' })
  })
})

it('a gateway is not ready until its services were available, and says what it waits for', async () => {
  const app = await startUpstream((_request, reply) => reply.writeHead(isUp ? 200 : 503).end())
  let isUp = false
  const url = `${app.url}/up`
  const config = { ...configOf([routeOf()], { app: [app.url] }), options: { services: { app: { url } } } }
  const { gateway, logged } = await startGateway({ config })
  await expect.poll(() => gateway.awaitedServices).toEqual([{ name: 'app', url, problem: 'status 503' }])
  expect(gateway.isReady).toBe(false)
  isUp = true
  await expect.poll(() => gateway.isReady, { timeout: 5000 }).toBe(true)
  expect(logged.join('')).toContain('waiting for a service')
})
