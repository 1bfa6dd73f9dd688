import type { Operation } from '@sluice/contract'
import { CHECK_PATH, OPERATIONS } from '@sluice/contract'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningService } from '../service.fixture.ts'
import { RawConnection, rawCheck, startService } from '../service.fixture.ts'
import type { Settings } from '../settings/settings.ts'

// What a web page can make of a service on the machine of its reader.

const BODY = '{"userId":"u1","resource":"/x"}'

async function start(settings: Partial<Settings> = {}): Promise<RunningService> {
  const node = await startService(settings)
  onTestFinished(() => node.stop())
  return node
}

/** The whole answer to bytes that the other side ends the connection after, or that ask for it. */
async function answerTo({ port }: RunningService, bytes: string): Promise<string> {
  const connection = new RawConnection(port)
  onTestFinished(() => connection.close())
  connection.send(bytes)
  return await connection.end()
}

function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])
}

const get = (path: string, headers: string): string => `GET ${path} HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`
const check = (host: string): string => rawCheck(BODY, 'Connection: close\r\n').replace('localhost', host)

describe('a request with two Host headers', () => {
  it.each(['Host: localhost\r\nHost: localhost\r\n', 'Host: localhost\r\nhOST: evil.example\r\n'])(
    'is rejected with 400 (%j)',
    async (hosts) => {
      const node = await start()
      for (const path of ['/livez', '/metrics']) {
        const answer = await answerTo(node, get(path, hosts))
        expect([statusOf(answer), answer]).toEqual([400, expect.stringContaining('SLUICE_HTTP_MALFORMED')])
      }
      const answer = await answerTo(node, check('localhost').replace('Host: localhost\r\n', hosts))
      expect([statusOf(answer), answer]).toEqual([400, expect.stringContaining('SLUICE_HTTP_MALFORMED')])
    },
  )
})

describe('a name that was made to resolve to this machine', () => {
  it('reaches nothing but probes on a loopback address', async () => {
    const node = await start()
    const answer = await answerTo(node, check('evil.example:8080'))
    expect([statusOf(answer), answer]).toEqual([421, expect.stringContaining('SLUICE_HTTP_UNKNOWN_HOST')])
    const host = 'Host: evil.example\r\n'
    expect(statusOf(await answerTo(node, get('/metrics', host)))).toBe(421)
    const key = `Authorization: Bearer ${node.adminKey}\r\n`
    expect(statusOf(await answerTo(node, get('/admin/ratelimits', host + key)))).toBe(421)
    expect(statusOf(await answerTo(node, get('/livez', host)))).toBe(200)
    expect(statusOf(await answerTo(node, get('/readyz', host)))).toBe(200)
    expect(statusOf(await answerTo(node, check(`localhost:${node.port}`)))).toBe(200)
    expect(statusOf(await answerTo(node, check('127.0.0.1')))).toBe(200)
    // Nothing was counted.
    const { remaining } = (await (await node.check(BODY)).json()) as { remaining: number }
    expect(remaining).toBe(97)
  })

  it('reaches a service that others reach, unless its hosts are set', async () => {
    const open = await start({ host: '0.0.0.0' })
    expect(statusOf(await answerTo(open, check('anything.example')))).toBe(200)
    const node = await start({ host: '0.0.0.0', allowedHosts: ['sluice.internal'] })
    expect(statusOf(await answerTo(node, check('anything.example')))).toBe(421)
    expect(statusOf(await answerTo(node, check('sluice.internal:8080')))).toBe(200)
    expect(statusOf(await answerTo(node, get('/readyz', 'Host: 10.1.2.3\r\n')))).toBe(200)
  })

  it('is not required of HTTP/1.0, which has no Host', async () => {
    const node = await start()
    expect(statusOf(await answerTo(node, 'GET /livez HTTP/1.0\r\n\r\n'))).toBe(200)
    expect(statusOf(await answerTo(node, 'GET /metrics HTTP/1.0\r\n\r\n'))).toBe(200)
  })
})

describe('every answer forbids browsers to guess its type', () => {
  it('of every operation, with and without a key', async () => {
    const node = await start()
    const missing: string[] = []
    for (const { method, path, streams } of Object.values<Operation>(OPERATIONS)) {
      for (const key of ['', node.adminKey!]) {
        const response = await fetch(node.origin + path.replace(/\{\w+\}/g, '1'), {
          method,
          headers: { 'Content-Type': 'application/json', ...(key && { Authorization: `Bearer ${key}` }) },
          ...(method === 'GET' ? {} : { body: '{}' }),
        })
        if (response.headers.get('x-content-type-options') !== 'nosniff') missing.push(`${method} ${path}`)
        if (key !== '' && streams) expect(response.headers.get('content-type')).toContain('event-stream')
        await response.body?.cancel()
      }
    }
    expect(missing).toEqual([])
  })

  it.each([
    ['what is no HTTP', 'nonsense\r\n\r\n', 400],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['two lengths', rawCheck(BODY, 'Content-Length: 1\r\n'), 400],
    ['a length and chunks', rawCheck(BODY, 'Transfer-Encoding: chunked\r\n'), 400],
    ['headers that are too long', get('/livez', `Host: localhost\r\nX: ${'x'.repeat(20_000)}\r\n`), 431],
    ['no host', get('/livez', ''), 400],
    ['an unknown host', get('/metrics', 'Host: evil.example\r\n'), 421],
    ['an unknown expectation', get('/livez', 'Host: localhost\r\nExpect: tea\r\n'), 417],
    ['an unknown path', get('/nowhere', 'Host: localhost\r\n'), 404],
    ['an unknown method', `PURGE ${CHECK_PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`, 405],
    ['an upgrade', get('/livez', 'Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'), 200],
    ['a body of another type', rawCheck(BODY, 'Connection: close\r\n').replace('application/json', 'text/plain'), 415],
    ['a body that is too large', rawCheck('x'.repeat(20_000), 'Connection: close\r\n'), 413],
  ])('to %s', async (_, bytes, status) => {
    const answer = await answerTo(await start(), bytes)
    expect([statusOf(answer), answer]).toEqual([
      status,
      expect.stringMatching(/\r\nX-Content-Type-Options: nosniff\r\n/),
    ])
  })
})
