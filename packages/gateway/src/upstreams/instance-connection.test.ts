import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttp2Server, createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { createServer as createSecureHttpServer } from 'node:https'
import { type AddressInfo, createServer as createNetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { makeCertificate, type SelfSignedCertificate } from '@sluice/testing/servers'
import type { Dispatcher } from 'undici'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { CompiledUpstream } from '../config/compiled-config.ts'
import { createUpstream, type UpstreamParts } from './create-upstream.ts'
import type { Upstream } from './upstream.ts'
import { attemptOn, FAILURE, OK } from './upstreams.test.support.ts'

let folder: string
let certificate: SelfSignedCertificate
const closers: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-upstreams-'))
  certificate = await makeCertificate(folder)
})

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

afterAll(() => rm(folder, { recursive: true }))

type AnyServer = Pick<Server, 'listen' | 'close' | 'address'>

async function listen(server: AnyServer, host = '127.0.0.1'): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  closers.push(() => new Promise((resolve) => server.close(resolve)))
  return (server.address() as AddressInfo).port
}

async function tlsServer(listener: RequestListener): Promise<number> {
  const files = { key: await readFile(certificate.keyFile), cert: await readFile(certificate.certificateFile) }
  return listen(createSecureHttpServer(files, listener))
}

async function start(config: CompiledUpstream, parts: UpstreamParts = {}): Promise<Upstream> {
  const upstream = createUpstream('orders', config, parts)
  closers.push(() => upstream.close())
  await upstream.start()
  return upstream
}

/** Sends one request to the instance that is chosen. */
async function send(upstream: Upstream, options: Partial<Dispatcher.RequestOptions> = {}) {
  const attempt = attemptOn(upstream)
  try {
    const answer = await attempt.dispatcher.request({ method: 'GET', path: '/', ...options })
    const text = await answer.body.text()
    attempt.finish({ ...OK, status: answer.statusCode })
    return { status: answer.statusCode, text, location: answer.headers['location'] }
  } catch (error) {
    attempt.finish(FAILURE)
    throw error
  }
}

/** A server that answers only clients with a certificate that `certificate` has signed, which is itself. */
async function mutualTlsServer(kind: 'http1' | 'http2'): Promise<number> {
  const [key, cert] = [await readFile(certificate.keyFile), await readFile(certificate.certificateFile)]
  const options = { key, cert, ca: cert, requestCert: true, rejectUnauthorized: true }
  const listener: RequestListener = (request, response) => {
    const socket = 'stream' in request ? (request.stream as ServerHttp2Stream).session!.socket : request.socket
    response.end((socket as TLSSocket).getPeerCertificate().subject.CN as string)
  }
  if (kind === 'http1') return listen(createSecureHttpServer(options, listener))
  return listen(createSecureServer(options, listener as never) as unknown as AnyServer)
}

describe('TLS to an instance that asks for a certificate', () => {
  it.each(['http1', 'http2'] as const)(
    'shows the configured one, to requests and to health checks: %s',
    async (kind) => {
      const port = await mutualTlsServer(kind)
      const { certificateFile: ca, keyFile: key } = certificate
      const health = { active: { path: '/', healthyAfter: 1 } }
      const config = { instances: [{ url: `https://127.0.0.1:${port}` }], protocol: kind, health }
      const known = await start({ ...config, tls: { ca, cert: ca, key } })
      expect(known.isAvailable).toBe(true)
      expect(await send(known)).toMatchObject({ status: 200, text: 'localhost' })
      const unknown = await start({ ...config, tls: { ca } })
      expect(unknown.isAvailable).toBe(false)
      const unchecked = await start({ instances: config.instances, protocol: kind, tls: { ca } })
      await expect(send(unchecked)).rejects.toThrow()
    },
  )
})

describe('TLS to an instance', () => {
  it('verifies the certificate by the host of the URL', async () => {
    const port = await tlsServer((_request, response) => response.end('secret'))
    const trusted = await start({
      instances: [{ url: `https://127.0.0.1:${port}` }],
      tls: { ca: certificate.certificateFile },
    })
    expect(await send(trusted)).toMatchObject({ status: 200, text: 'secret' })
    const untrusted = await start({ instances: [{ url: `https://127.0.0.1:${port}` }] })
    await expect(send(untrusted)).rejects.toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    const tls = { ca: certificate.certificateFile, serverName: 'orders.example.com' }
    const misnamed = await start({ instances: [{ url: `https://127.0.0.1:${port}` }], tls })
    await expect(send(misnamed)).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  })

  it('takes neither the name nor the connection from the Host of a request', async () => {
    const names = new Set<unknown>()
    const sockets = new Set<unknown>()
    const port = await tlsServer((request, response) => {
      names.add((request.socket as TLSSocket).servername)
      sockets.add(request.socket)
      response.end(request.headers.host)
    })
    const tls = { ca: certificate.certificateFile }
    const upstream = await start({ instances: [{ url: `https://localhost:${port}` }], tls, connections: 1 })
    for (const host of ['a.example.com', 'b.example.com', 'c.example.com']) {
      expect(await send(upstream, { headers: { host } })).toMatchObject({ text: host })
    }
    expect([...names]).toEqual(['localhost'])
    expect(sockets.size).toBe(1)
  })

  it('opens a connection for an upgrade with the same checks', async () => {
    const files = { key: await readFile(certificate.keyFile), cert: await readFile(certificate.certificateFile) }
    const server = createSecureHttpServer(files)
    server.on('upgrade', (_request, connection) => {
      connection.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nover TLS')
    })
    const url = `https://127.0.0.1:${await listen(server)}`
    const trusted = attemptOn(await start({ instances: [{ url }], tls: { ca: certificate.certificateFile } }))
    const options = { path: '/', protocol: 'websocket' }
    const upgraded = await trusted.dispatcher.upgrade(options)
    expect(Buffer.concat(await upgraded.socket.toArray()).toString()).toBe('over TLS')
    upgraded.socket.destroy()
    trusted.finish({ ...OK, status: 101 })
    const failing = attemptOn(await start({ instances: [{ url }] }))
    await expect(failing.dispatcher.upgrade(options)).rejects.toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    failing.finish(FAILURE)
  })
})

describe('HTTP/2 to an instance', () => {
  it.each(['http', 'https'])('is used over %s if the upstream asks for it', async (scheme) => {
    const files = { key: await readFile(certificate.keyFile), cert: await readFile(certificate.certificateFile) }
    const server = scheme === 'http' ? createHttp2Server() : createSecureServer({ ...files, allowHTTP1: true })
    server.on('request', (request, response) => response.end(request.httpVersion))
    const port = await listen(server as unknown as AnyServer)
    const url = `${scheme}://127.0.0.1:${port}`
    const tls = { ca: certificate.certificateFile }
    expect((await send(await start({ instances: [{ url }], tls, protocol: 'http2' }))).text).toBe('2.0')
    if (scheme === 'https') expect((await send(await start({ instances: [{ url }], tls }))).text).toBe('1.1')
  })
})

describe('addresses', () => {
  it.each([
    'http://169.254.169.254',
    'http://[::ffff:169.254.169.254]',
    'http://[fe80::1]',
    'http://[fd00:ec2::254]',
    'http://100.100.100.200',
    'http://[64:ff9b::169.254.169.254]',
    'http://[2002:a9fe:a9fe::]',
  ])('%s is denied unless it is allowed', async (url) => {
    const denied = await start({ instances: [{ url }] })
    expect(denied.isAvailable).toBe(false)
    expect(denied.stats().unresolved).toEqual([{ url, problem: expect.stringContaining('metadata') }])
  })

  it('a denied address that is named in allowAddresses can be used', async () => {
    const instances = [{ url: 'http://169.254.169.254' }]
    expect((await start({ instances, allowAddresses: ['169.254.169.254'] })).isAvailable).toBe(true)
    expect((await start({ instances, allowAddresses: ['169.254.169.0/24'] })).isAvailable).toBe(true)
    expect((await start({ instances, allowAddresses: ['169.254.169.253'] })).isAvailable).toBe(false)
  })

  it('connects to the address that was checked: a name is not resolved a second time', async () => {
    let queries = 0
    const port = await listen(createServer((_request, response) => response.end('checked')))
    const resolve = (): Promise<string[]> => {
      queries++
      return Promise.resolve(['127.0.0.1'])
    }
    // The system cannot resolve this name: a second query would fail.
    const upstream = await start({ instances: [{ url: `http://orders.invalid:${port}` }] }, { resolve })
    expect(await send(upstream)).toMatchObject({ text: 'checked' })
    expect(queries).toBe(1)
  })

  it('a name that resolves to a metadata service has no instance', async () => {
    const upstream = await start(
      { instances: [{ url: 'http://orders.invalid' }] },
      { resolve: async () => ['169.254.169.254'] },
    )
    expect(upstream.isAvailable).toBe(false)
    expect(upstream.stats().unresolved[0]!.problem).toContain('169.254.169.254')
  })

  it('of several addresses, only those that are allowed are used', async () => {
    const port = await listen(createServer((_request, response) => response.end('allowed')))
    const resolve = async () => ['169.254.169.254', '127.0.0.1']
    const upstream = await start({ instances: [{ url: `http://orders.invalid:${port}` }] }, { resolve })
    for (let request = 0; request < 4; request++) expect(await send(upstream)).toMatchObject({ text: 'allowed' })
    expect(upstream.stats().instances).toHaveLength(1)
  })

  it('redirects are passed on, not followed', async () => {
    let requests = 0
    const port = await listen(
      createServer((_request, response) => {
        requests++
        response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data' }).end()
      }),
    )
    const upstream = await start({ instances: [{ url: `http://127.0.0.1:${port}` }] })
    expect(await send(upstream)).toMatchObject({ status: 302, location: 'http://169.254.169.254/latest/meta-data' })
    expect(requests).toBe(1)
  })

  it.each(['127.0.0.1', '::1'])('localhost is one instance, also if the server listens on %s only', async (host) => {
    const port = await listen(
      createServer((_request, response) => response.end(host)),
      host,
    )
    const resolve = async () => ['::1', '127.0.0.1']
    const upstream = await start({ instances: [{ url: `http://localhost:${port}` }] }, { resolve })
    expect(upstream.stats().instances).toHaveLength(1)
    for (let request = 0; request < 4; request++) expect(await send(upstream)).toMatchObject({ text: host })
  })
})

it('a connection that is not complete in time fails', async () => {
  // Takes connections, and says nothing in the handshake of TLS.
  const silent = createNetServer((socket) => {
    closers.push(() => Promise.resolve(socket.destroy()))
    socket.on('error', () => undefined)
  })
  const port = await listen(silent as unknown as AnyServer)
  const upstream = await start({ instances: [{ url: `https://127.0.0.1:${port}` }], connectMs: 50 })
  await expect(send(upstream)).rejects.toMatchObject({ code: 'UND_ERR_CONNECT_TIMEOUT' })
})

it('closing waits for requests in flight', async () => {
  const release = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  const port = await listen(
    createServer(async (_request, response) => {
      arrived.resolve()
      await release.promise
      response.end('done')
    }),
  )
  const upstream = await start({ instances: [{ url: `http://127.0.0.1:${port}` }] })
  const answer = send(upstream)
  await arrived.promise
  const closed = upstream.close()
  release.resolve()
  expect(await answer).toMatchObject({ text: 'done' })
  await closed
})
