import { once } from 'node:events'
import { createServer, type IncomingMessage, request as send } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore } from '@sluice/core'
import express, { type Express } from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ExpressRateLimit, type ExpressRateLimitOptions, rateLimit } from '../adapters/express/express.ts'
import { byIp, byUser } from '../identity/identity.ts'
import type { MisuseWarning } from '../misuse/misuse-warning.ts'

// The mistakes that beginners make with a real server, and that each is reported with its code, once, while requests go
// on as before.

/** An Express app on a real port or socket, and the mistakes that its limiters report. */
async function serve(build: (app: Express, limit: Limit) => void, listenOn: number | string = 0) {
  const warnings: MisuseWarning[] = []
  const warn = (warning: MisuseWarning) => void warnings.push(warning)
  const limit: Limit = (options = {}) => {
    const limiter = rateLimit({ limit: 100, window: '1m', warn, ...options })
    onTestFinished(() => limiter.close())
    return limiter
  }
  const app = express()
  build(app, limit)
  app.get('/', (_request, response) => void response.send('hello'))
  const server = createServer(app)
  if (typeof listenOn === 'string') server.listen(listenOn)
  else server.listen(listenOn, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    await once(server, 'close')
  })
  const address = server.address()
  const target = typeof address === 'string' ? { socketPath: address } : { host: '127.0.0.1', port: address!.port }
  const get = async (headers: Record<string, string> = {}): Promise<number | undefined> => {
    const sent = send({ ...target, agent: false, headers })
    sent.end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    response.resume()
    await once(response, 'close')
    return response.statusCode
  }
  return { get, codes: () => warnings.map(({ code }) => code) }
}

type Limit = (options?: ExpressRateLimitOptions) => ExpressRateLimit

describe('an Express app', () => {
  it('that is right gets no warning', async () => {
    const { get, codes } = await serve((app, limit) => {
      app.use(limit({ name: 'all' }))
      app.use(limit({ name: 'one', limit: 10 }))
    })
    for (let count = 0; count < 20; count++) await get()
    expect(codes()).toEqual([])
  })

  it('behind a proxy that it does not trust', async () => {
    const { get, codes } = await serve((app, limit) => app.use(limit()))
    expect([await get({ 'x-forwarded-for': '1.2.3.4' }), await get({ forwarded: 'for=1.2.3.4' })]).toEqual([200, 200])
    expect(codes()).toEqual(['SLUICE_USE_PROXY_NOT_TRUSTED'])
  })

  it('behind a second proxy that it does not trust', async () => {
    const { get, codes } = await serve((app, limit) => app.use(limit({ limit: 1, trustProxy: 1 })))
    expect(await get({ 'x-forwarded-for': '8.8.8.8, 10.0.0.5' })).toBe(200)
    // Another client, which counts as the same.
    expect(await get({ 'x-forwarded-for': '9.9.9.9, 10.0.0.5' })).toBe(429)
    expect(codes()).toEqual(['SLUICE_USE_PROXY_NOT_TRUSTED'])
  })

  it('behind a proxy whose header is another one', async () => {
    const { get, codes } = await serve((app, limit) => app.use(limit()))
    await get({ 'x-real-ip': '8.8.8.8' })
    expect(codes()).toEqual(['SLUICE_USE_PROXY_NOT_TRUSTED'])
  })

  it('behind a proxy that Express trusts, whose address it takes, gets no warning', async () => {
    const { get, codes } = await serve((app, limit) => {
      app.set('trust proxy', 1)
      app.use(limit({ limit: 1, key: byIp((request: express.Request) => request.ip) }))
    })
    expect(await get({ 'x-forwarded-for': '8.8.8.8' })).toBe(200)
    expect(await get({ 'x-forwarded-for': '9.9.9.9' })).toBe(200)
    expect(await get({ 'x-forwarded-for': '9.9.9.9' })).toBe(429)
    expect(codes()).toEqual([])
  })

  it('behind a proxy, by user, gets a warning when the address counts of those who have not signed in', async () => {
    const { get, codes } = await serve((app, limit) => {
      const key = byUser((request: express.Request) => request.get('signed-in-user'))
      app.use(limit({ key }))
    })
    await get({ 'x-forwarded-for': '8.8.8.8', 'signed-in-user': 'ada' })
    expect(codes()).toEqual([])
    await get({ 'x-forwarded-for': '8.8.8.8' })
    expect(codes()).toEqual(['SLUICE_USE_PROXY_NOT_TRUSTED'])
  })

  it('that trusts more proxies than there are', async () => {
    const { get, codes } = await serve((app, limit) => app.use(limit({ trustProxy: 2 })))
    await get({ 'x-forwarded-for': '1.2.3.4' })
    await get({ 'x-forwarded-for': '1.2.3.4' })
    expect(codes()).toEqual(['SLUICE_USE_PROXY_TRUST_TOO_WIDE'])
  })

  it('that trusts everybody', async () => {
    const { codes } = await serve((app, limit) => app.use(limit({ trustProxy: ['0.0.0.0/0', '::/0'] })))
    expect(codes()).toEqual(['SLUICE_USE_PROXY_TRUST_TOO_WIDE'])
  })

  it('that makes a limiter for each request', async () => {
    const { get, codes } = await serve((app, limit) => {
      app.use((request, response, next) => limit({ limit: 1 })(request, response, next))
    })
    const statuses: (number | undefined)[] = []
    for (let count = 0; count < 12; count++) statuses.push(await get())
    // Nothing is ever denied, which is why it is reported.
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(codes()).toEqual(['SLUICE_USE_LIMITER_IN_HANDLER'])
  })

  it('that uses a limiter twice', async () => {
    const { get, codes } = await serve((app, limit) => {
      const limiter = limit()
      app.use(limiter)
      app.get('/', limiter)
    })
    await get()
    await get()
    expect(codes()).toEqual(['SLUICE_USE_COUNTED_TWICE'])
  })

  it('with two limiters of one name and store', async () => {
    const store = memoryStore()
    onTestFinished(() => store.close())
    const { get, codes } = await serve((app, limit) => {
      app.use(limit({ name: 'all', store }))
      app.get('/', limit({ name: 'all', store }))
    })
    await get()
    expect(codes()).toEqual(['SLUICE_USE_COUNTED_TWICE'])
  })

  it('with two routes whose limiters have one store and no names', async () => {
    const store = memoryStore()
    onTestFinished(() => store.close())
    const { codes } = await serve((app, limit) => {
      app.get('/login', limit({ limit: 5, store }))
      app.get('/signup', limit({ limit: 5, store }))
    })
    expect(codes()).toEqual(['SLUICE_USE_SHARED_NAME'])
  })

  it('with two routes whose limiters have one store and one name gets no warning', async () => {
    const store = memoryStore()
    onTestFinished(() => store.close())
    const { codes } = await serve((app, limit) => {
      app.get('/login', limit({ name: 'account', store }))
      app.get('/signup', limit({ name: 'account', store }))
    })
    expect(codes()).toEqual([])
  })

  it('with two limiters of one name', async () => {
    const { get, codes } = await serve((app, limit) => {
      app.use(limit())
      app.get('/', limit({ limit: 5 }))
    })
    await get()
    expect(codes()).toEqual(['SLUICE_USE_SHARED_NAME'])
  })

  it('on a Unix socket', async () => {
    const path = join(tmpdir(), `sluice-misuse-${process.pid}.sock`)
    const { get, codes } = await serve((app, limit) => app.use(limit({ limit: 1 })), path)
    // All that come over the socket count together: none is let through uncounted.
    expect([await get(), await get()]).toEqual([200, 429])
    expect(codes()).toEqual(['SLUICE_USE_NO_ADDRESS'])
  })

  it('on a Unix socket behind a proxy that it counts', async () => {
    const path = join(tmpdir(), `sluice-trusted-${process.pid}.sock`)
    const { get, codes } = await serve((app, limit) => app.use(limit({ limit: 1, trustProxy: 1 })), path)
    expect(await get({ 'x-forwarded-for': '1.2.3.4' })).toBe(200)
    expect(await get({ 'x-forwarded-for': '5.6.7.8' })).toBe(200)
    expect(await get({ 'x-forwarded-for': '6.6.6.6, 5.6.7.8' })).toBe(429)
    expect(codes()).toEqual([])
  })
})
