import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../../service.fixture.ts'
import { RawConnection, startRealService, startService } from '../../service.fixture.ts'
import type { Settings } from '../../settings/settings.ts'

interface Certified {
  readonly node: RunningNode
  /** A client that knows the service. */
  readonly trusting: { readonly ca: Buffer }
  /** The same with a certificate of its own. */
  readonly certified: { readonly ca: Buffer; readonly cert: Buffer; readonly key: Buffer }
}

async function start({ hasClientCa = false, isReal = false }, settings: Partial<Settings> = {}): Promise<Certified> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-tls-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const { certificateFile: cert, keyFile: key } = await makeCertificate(folder)
  const httpTls = { cert, key, clientCa: hasClientCa ? cert : undefined }
  const node = await (isReal ? startRealService : startService)({ checkKey: true, httpTls, ...settings })
  onTestFinished(() => node.stop())
  const ca = await readFile(cert)
  return { node, trusting: { ca }, certified: { ca, cert: ca, key: await readFile(key) } }
}

interface Call {
  readonly path: string
  readonly key?: string | undefined
  readonly body?: string
}

/** The status and the text of an answer. */
function call(port: number, { path, key, body }: Call, options: object): Promise<{ status: number; text: string }> {
  const headers = {
    ...(key !== undefined && { Authorization: `Bearer ${key}` }),
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
  }
  const method = body === undefined ? 'GET' : 'POST'
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false, ...options }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode!, text }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const CHECK: Call = { path: '/internal/ratelimit/check', body: '{"user":"a","resource":"/x"}' }

describe('HTTPS', () => {
  it('needs a key like plain text', async () => {
    const { node, trusting } = await start({})
    expect((await call(node.port, CHECK, trusting)).status).toBe(401)
    expect((await call(node.port, { ...CHECK, key: node.adminKey }, trusting)).status).toBe(200)
    expect((await call(node.port, { path: '/admin/ratelimits', key: node.adminKey }, trusting)).status).toBe(200)
    expect(node.errors).toEqual([])
  })

  it('with client certificates needs one, and no key for checks', async () => {
    const { node, trusting, certified } = await start({ hasClientCa: true })
    expect((await call(node.port, CHECK, certified)).status).toBe(200)
    await expect(call(node.port, CHECK, trusting)).rejects.toThrow(/certificate required|ECONNRESET/)
    // A certificate says who may ask. What an admin may do, a key says.
    expect((await call(node.port, { path: '/admin/ratelimits' }, certified)).status).toBe(401)
    const { text } = await call(node.port, { path: '/readyz' }, certified)
    expect(text).toMatch(/"listener http".*client certificate needed/)
  })

  it('is for the admin listener too', async () => {
    const { node, trusting } = await start({}, { admin: { port: 0 } })
    const { admin } = node.service.ports
    expect((await call(admin!, { path: '/metrics' }, trusting)).status).toBe(200)
    expect((await call(node.port, { path: '/metrics' }, trusting)).status).toBe(404)
  })

  it('closes a connection that speaks plain HTTP, and goes on', async () => {
    const { node, trusting } = await start({})
    const connection = new RawConnection(node.port)
    onTestFinished(() => connection.close())
    connection.send('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await connection.end()
    expect((await call(node.port, { path: '/livez' }, trusting)).status).toBe(200)
    expect(node.errors).toEqual([])
  })

  it('is shared by threads, and stops with connections that are kept alive', async () => {
    const { node, trusting } = await start({ isReal: true }, { threads: 2 })
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => call(node.port, { ...CHECK, key: node.adminKey }, trusting)),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200))
    await node.service.stop()
    await expect(call(node.port, CHECK, trusting)).rejects.toThrow('ECONNREFUSED')
  })
})
