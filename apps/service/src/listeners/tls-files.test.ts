import { X509Certificate } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { PeerCertificate } from 'node:tls'
import { connect } from 'node:tls'
import { makeCertificate } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningService } from '../service.fixture.ts'
import { RawConnection, startRealService, startService } from '../service.fixture.ts'
import type { Settings, TlsSettings } from '../settings/settings.ts'
import { RELOAD_EVERY_MS } from './tls-files.ts'

/** A pair in files, and another one to replace it with. */
async function pairs(): Promise<{ readonly tls: TlsSettings; readonly next: TlsSettings }> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-tls-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const [tls, next] = await Promise.all(
    ['one', 'two'].map(async (name): Promise<TlsSettings> => {
      await mkdir(join(folder, name))
      const { certificateFile: cert, keyFile: key } = await makeCertificate(join(folder, name))
      return { cert, key, clientCa: undefined }
    }),
  )
  return { tls: tls!, next: next! }
}

/** The fingerprint of what a new connection to the port gets. */
function served(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(
      { port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2', 'http/1.1'] },
      () => {
        resolve((socket.getPeerCertificate() as PeerCertificate).fingerprint256)
        socket.destroy()
      },
    )
    socket.on('error', reject)
  })
}

/** What the service answers, by HTTP or by HTTPS with any certificate. */
async function textOf(url: string): Promise<string> {
  if (!url.startsWith('https:')) return await (await fetch(url)).text()
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { rejectUnauthorized: false, agent: false }, resolve).on('error', reject)
  })
  return await text(response)
}

async function fingerprintOf({ cert }: TlsSettings): Promise<string> {
  return new X509Certificate(await readFile(cert)).fingerprint256
}

interface TlsCase {
  readonly settings: (tls: TlsSettings) => Partial<Settings>
  readonly portOf: (node: RunningService) => number
}

const CASES: readonly (readonly [string, TlsCase])[] = [
  ['http', { settings: (httpTls) => ({ httpTls }), portOf: ({ port }) => port }],
  ['resp', { settings: (tls) => ({ resp: { port: 0, tls } }), portOf: ({ respPort }) => respPort }],
  ['grpc', { settings: (tls) => ({ grpc: { port: 0, tls, deadlineMs: 15 } }), portOf: ({ grpcPort }) => grpcPort }],
]

describe.each(CASES)('the TLS files of the listener %s', (name, { settings, portOf }) => {
  async function start(tls: TlsSettings): Promise<RunningService> {
    const node = await startService({ ...settings(tls), logLevel: 'info' })
    onTestFinished(() => node.stop())
    return node
  }
  /** Lets the service read the files again. The next wait begins when that is done. */
  async function reload(node: RunningService): Promise<void> {
    await node.endWaits(RELOAD_EVERY_MS)
    await expect(node.endWaits(RELOAD_EVERY_MS)).resolves.toBeUndefined()
  }
  const health = (node: RunningService): Promise<string> => textOf(`${node.origin}/readyz`)

  it('are used again when they have changed, without a restart', async () => {
    const { tls, next } = await pairs()
    const node = await start(tls)
    expect(await served(portOf(node))).toBe(await fingerprintOf(tls))
    const changed = await fingerprintOf(next)
    await copyFile(next.cert, tls.cert)
    await copyFile(next.key, tls.key)
    await reload(node)
    expect(await served(portOf(node))).toBe(changed)
    expect(await health(node)).toContain('"status":"ready"')
    expect(node.log.filter(({ message }) => message.includes('TLS files'))).toMatchObject([{ listener: name }])
  })

  it('stay in use while the new ones cannot be used, which the log and /readyz say', async () => {
    const { tls, next } = await pairs()
    const before = await fingerprintOf(tls)
    const node = await start(tls)
    await copyFile(next.cert, tls.cert)
    await reload(node)
    await reload(node)
    expect(await served(portOf(node))).toBe(before)
    expect(await health(node)).toMatch(/"status":"degraded".*"tls-files-unusable".*--\w+-tls-cert/)
    expect(node.errors).toMatchObject([{ message: 'the TLS files of a listener cannot be used', listener: name }])
    await copyFile(next.key, tls.key)
    await reload(node)
    expect(await served(portOf(node))).toBe(await fingerprintOf(next))
    expect(await health(node)).toContain('"status":"ready"')
  })

  it('stay in use while a file is missing', async () => {
    const { tls } = await pairs()
    const before = await fingerprintOf(tls)
    const node = await start(tls)
    const content = await readFile(tls.key)
    await rm(tls.key)
    await reload(node)
    expect(await served(portOf(node))).toBe(before)
    expect(await health(node)).toMatch(/tls-files-unusable.*ENOENT/)
    await writeFile(tls.key, content)
    await reload(node)
    expect(await health(node)).toContain('"status":"ready"')
  })

  it('let the listener stop while a client has not begun its handshake', async () => {
    const { tls } = await pairs()
    const node = await startService(settings(tls))
    const connection = new RawConnection(portOf(node))
    onTestFinished(() => connection.close())
    await expect
      .poll(async () => await textOf(`${node.origin}/metrics`))
      .toMatch(new RegExp(`sluice_listener_connections\\{listener="${name}"\\} ${name === 'http' ? 2 : 1}\\n`))
    await node.stop()
    expect(await connection.end()).toBe('')
  })

  it('end the start with the setting if certificate and key do not belong together', async () => {
    const { tls, next } = await pairs()
    await expect(startRealService(settings({ ...tls, key: next.key }))).rejects.toMatchObject({
      cause: { code: 'SLUICE_SERVICE_INVALID_SETTING', message: expect.stringContaining(`--${name}-tls-key`) },
    })
  })
})
