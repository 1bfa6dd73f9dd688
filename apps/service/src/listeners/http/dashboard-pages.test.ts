import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { RawConnection, startService } from '../../service.fixture.ts'
import { readDashboardFiles } from './dashboard-files.ts'
import { dashboardPages } from './dashboard-pages.ts'
import { RequestServer } from './request-server.ts'
import { createRouter } from './router.ts'

const INDEX =
  '<!doctype html><link href="./assets/index-BGlrooTe.css"><script src="./assets/index-DlpWE5fm.js"></script>'
const SCRIPT = `console.log("${'x'.repeat(2000)}")`
const HTML = { Accept: 'text/html,*/*;q=0.8' }

/** A built dashboard with a secret beside its folder. */
async function builtFolder(): Promise<string> {
  const outside = await mkdtemp(join(tmpdir(), 'sluice-dashboard-'))
  onTestFinished(() => rm(outside, { recursive: true, force: true }))
  const folder = join(outside, 'dist')
  await mkdir(join(folder, 'assets'), { recursive: true })
  await writeFile(join(outside, 'secret.txt'), 'secret')
  await writeFile(join(folder, 'index.html'), INDEX)
  await writeFile(join(folder, 'sluice.svg'), '<svg/>')
  await writeFile(join(folder, '.env'), 'secret')
  await writeFile(join(folder, 'manifest.json'), '{}')
  await writeFile(join(folder, 'assets/index-DlpWE5fm.js'), SCRIPT)
  await writeFile(join(folder, 'assets/index-DlpWE5fm.js.br'), brotliCompressSync(SCRIPT))
  await writeFile(join(folder, 'assets/index-DlpWE5fm.js.gz'), gzipSync(SCRIPT))
  await writeFile(join(folder, 'assets/index-BGlrooTe.css'), 'a{}')
  await symlink(join(outside, 'secret.txt'), join(folder, 'assets/link.txt'))
  return folder
}

interface Scene {
  readonly port: number
  get(path: string, headers?: Readonly<Record<string, string>>, method?: string): Promise<Response>
}

async function serve(files: ReturnType<typeof readDashboardFiles> | undefined): Promise<Scene> {
  const requests = new RequestServer({
    route: createRouter([], 'nothing'),
    findPage: dashboardPages(files),
    sleep: () => Promise.reject(new Error('Nothing waits here.')),
    reportError: (error) => {
      throw error
    },
    newRequestId: () => '1',
  })
  const server = createServer((request, response) => requests.serve(request, response))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => void server.close(() => resolve()))
  })
  const { port } = server.address() as AddressInfo
  const get: Scene['get'] = (path, headers = {}, method = 'GET') =>
    fetch(`http://127.0.0.1:${port}${path}`, { method, headers })
  return { port, get }
}

describe('the dashboard', () => {
  it('is one page for / and all its routes, with a strict policy', async () => {
    const { get } = await serve(readDashboardFiles(await builtFolder()))
    for (const path of ['/', '/rules', '/playground?a=1', '/overview']) {
      const response = await get(path, HTML)
      expect([path, response.status, await response.text()]).toEqual([path, 200, INDEX])
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(response.headers.get('cache-control')).toBe('no-cache')
      expect(response.headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
          "require-trusted-types-for 'script'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
      )
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      expect(response.headers.get('referrer-policy')).toBe('same-origin')
    }
    expect((await get('/')).status).toBe(200)
    const head = await get('/', HTML, 'HEAD')
    expect([head.status, await head.text(), head.headers.get('content-length')]).toEqual([
      200,
      '',
      String(INDEX.length),
    ])
  })

  it('finds its files from routes further down', async () => {
    const { get } = await serve(readDashboardFiles(await builtFolder()))
    const text = await (await get('/decisions/17', HTML)).text()
    expect(text).toContain('src="../assets/index-DlpWE5fm.js"')
    expect(await (await get('/a/b/c', HTML)).text()).toContain('href="../../assets/index-BGlrooTe.css"')
  })

  it('serves files of which only the compressed form is there', async () => {
    const folder = await builtFolder()
    await rm(join(folder, 'assets/index-DlpWE5fm.js'))
    const { get } = await serve(readDashboardFiles(folder))
    for (const encoding of ['identity', 'gzip', 'br']) {
      const script = await get('/assets/index-DlpWE5fm.js', { 'Accept-Encoding': encoding })
      expect(script.headers.get('content-encoding')).toBe(encoding === 'identity' ? null : encoding)
      expect(await script.text()).toBe(SCRIPT)
    }
    expect((await get('/assets/index-DlpWE5fm.js.gz')).status).toBe(404)
  })

  it('caches hashed files for good, and asks again for the others', async () => {
    const { get } = await serve(readDashboardFiles(await builtFolder()))
    const script = await get('/assets/index-DlpWE5fm.js', { 'Accept-Encoding': 'identity' })
    expect(await script.text()).toBe(SCRIPT)
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    const icon = await get('/sluice.svg')
    expect(icon.headers.get('cache-control')).toBe('no-cache')
    const again = await get('/sluice.svg', { 'If-None-Match': icon.headers.get('etag')! })
    expect([again.status, await again.text()]).toEqual([304, ''])
  })

  it.each([
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['br;q=0.0', undefined],
    ['deflate', undefined],
    ['', undefined],
  ])('sends %s as %s', async (accepted, encoding) => {
    const { port } = await serve(readDashboardFiles(await builtFolder()))
    const connection = new RawConnection(port)
    const encodings = accepted === '' ? '' : `Accept-Encoding: ${accepted}\r\n`
    connection.send(`GET /assets/index-DlpWE5fm.js HTTP/1.1\r\nHost: h\r\nConnection: close\r\n${encodings}\r\n`)
    const text = await connection.end()
    const [head = '', body = ''] = text.split('\r\n\r\n')
    expect(/^content-encoding: (.*)$/im.exec(head)?.[1]).toBe(encoding)
    expect(head).toMatch(/^vary: accept-encoding$/im)
    if (encoding === 'br') expect(brotliDecompressSync(Buffer.from(body, 'latin1')).toString()).toBe(SCRIPT)
    if (encoding === undefined) expect(body).toBe(SCRIPT)
  })

  it.each([
    '/../secret.txt',
    '/assets/../../secret.txt',
    '/assets/..%2f..%2fsecret.txt',
    '/%2e%2e/secret.txt',
    '/..\\secret.txt',
    '/assets/%00',
    '//secret.txt',
    '/.env',
    '/manifest.json',
    '/assets/link.txt',
    '/assets/index-DlpWE5fm.js.br',
    '/assets/',
    '/index.html/',
    'secret.txt',
    'http://h/../secret.txt',
    '/rules.json',
    '/admin/nothing',
    '/auth/nothing',
    '/internal/x',
    '/v1/x',
  ])('has nothing at %s', async (path) => {
    const { port } = await serve(readDashboardFiles(await builtFolder()))
    const connection = new RawConnection(port)
    connection.send(`GET ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAccept: text/html\r\n\r\n`)
    const text = await connection.end()
    expect(text.split('\r\n')[0]).toMatch(/ 40[04] /)
    expect(text).not.toContain('secret')
  })

  it('leaves programs and changes to the API', async () => {
    const { get } = await serve(readDashboardFiles(await builtFolder()))
    expect((await get('/rules', { Accept: '*/*' })).status).toBe(404)
    expect((await get('/', HTML, 'POST')).status).toBe(404)
  })

  it('says what to run when it was not built', async () => {
    const { get } = await serve(undefined)
    const response = await get('/', HTML)
    expect([response.status, await response.text()]).toEqual([
      503,
      expect.stringContaining('npm run build --workspace'),
    ])
    expect((await get('/assets/x.js')).status).toBe(404)
  })
})

describe('a service', () => {
  it('answers at / unless the dashboard is off, and only under its own name', async () => {
    const on = await startService()
    onTestFinished(() => on.stop())
    expect([200, 503]).toContain((await fetch(`${on.origin}/`, { headers: HTML })).status)
    const connection = new RawConnection(on.port)
    connection.send('GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n')
    expect(await connection.end()).toMatch(/^HTTP\/1\.1 421 /)
    const off = await startService({ dashboard: false })
    onTestFinished(() => off.stop())
    expect((await fetch(`${off.origin}/`, { headers: HTML })).status).toBe(404)
  })
})
