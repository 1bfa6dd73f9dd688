import type { Operation } from '@sluice/contract'
import { OPERATIONS } from '@sluice/contract'
import { systemMonotonicMs } from '@sluice/core/internal'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RunningService } from '../service.fixture.ts'
import { startService } from '../service.fixture.ts'

// Whatever is sent to whichever operation is answered with what was wrong about it.

let node: RunningService

beforeAll(async () => {
  node = await startService({ logLevel: 'error' })
})

afterAll(() => node.stop())

const deep = (open: string, close: string): string => open.repeat(5000) + close.repeat(5000)

const BODIES: readonly (readonly [string, string | Uint8Array])[] = [
  ['two megabytes of numeric keys', `{${Array.from({ length: 150_000 }, (_, key) => `"${key}":1`).join(',')}}`],
  ['nested lists', deep('[', ']')],
  ['two megabytes of nested lists', '['.repeat(1_000_000) + ']'.repeat(1_000_000)],
  ['two megabytes of lists without end', '['.repeat(2_000_000)],
  ['nested objects', `${'{"a":'.repeat(2500)}1${'}'.repeat(2500)}`],
  ['a prototype', '{"__proto__":{"isAdmin":true},"resource":"/x","userId":"u"}'],
  ['a constructor', '{"constructor":{"prototype":{"isAdmin":true}}}'],
  ['huge numbers', `{"tokens":1${'0'.repeat(400)},"resource":"/x"}`],
  ['numbers of many digits', `{"tokens":${'9'.repeat(10_000)}}`],
  ['broken UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d)],
  ['lone surrogates', '{"userId":"\\ud800","resource":"/x"}'],
  ['control characters', '{"userId":"a\\u0000\\n","resource":"/x\\u0007"}'],
  ['nothing', ''],
  ['half of it', '{"resource":"/x'],
  ['null', 'null'],
  ['a list', '[]'],
  ['a number', '1e999'],
]

/** As many bytes as the largest of them, and nothing wrong with it but that it is too long to be a name. */
const ORDINARY = JSON.stringify({ resource: 'x'.repeat(Math.max(...BODIES.map(([, body]) => body.length)) - 15) })

/** How many times as long as an ordinary request one may take at most. */
const MOST_TIMES = 10

const WITH_BODY = Object.values<Operation>(OPERATIONS).filter(({ body }) => body !== undefined)

describe.each(WITH_BODY.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
  '%s',
  (_name, operation) => {
    it.each(BODIES)('rejects %s', async (_title, body) => {
      const response = await send(operation, body)
      const text = await response.text()
      expect([response.status >= 400 && response.status < 500, text]).toEqual([true, text])
      expect(response.headers.get('content-type')).toBe('application/problem+json')
      expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined()
    })
  },
)

async function send({ method, path }: Operation, body: string | Uint8Array): Promise<Response> {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${node.adminKey}` }
  return await fetch(node.origin + path.replace(/\{\w+\}/g, '1'), { method, headers, body })
}

/** The shortest of several times: whatever else the machine does only adds to it. */
async function shortestMs(operation: Operation, body: string | Uint8Array): Promise<number> {
  let shortest = Number.POSITIVE_INFINITY
  for (let tried = 0; tried < 3; tried++) {
    const startedMs = systemMonotonicMs()
    await (await send(operation, body)).arrayBuffer()
    shortest = Math.min(shortest, systemMonotonicMs() - startedMs)
  }
  return shortest
}

describe('a hostile body', () => {
  it('keeps the service at most a few times as long as an ordinary one of the same size', async () => {
    const slow: string[] = []
    for (const operation of WITH_BODY) {
      const ordinaryMs = await shortestMs(operation, ORDINARY)
      for (const [title, body] of BODIES) {
        let ratio = (await shortestMs(operation, body)) / ordinaryMs
        // On a busy machine it may be another program that took long: what is slow is slow every time.
        for (let tried = 0; ratio > MOST_TIMES && tried < 5; tried++) {
          ratio = Math.min(ratio, (await shortestMs(operation, body)) / ordinaryMs)
        }
        if (ratio > MOST_TIMES) slow.push(`${operation.id}, ${title}: ${ratio.toFixed(1)} times`)
      }
    }
    expect(slow).toEqual([])
  })
})

describe('a body that is nested without end', () => {
  // What the largest bodies may have.
  const TAKEN_BYTES = 8 * 1024 * 1024

  it.each([
    ['two megabytes', 2_000_000],
    ['as much as is read', TAKEN_BYTES],
  ])('of %s is rejected in less than 100 ms', async (_, bytes) => {
    const operation = WITH_BODY.find(({ path }) => path === '/admin/versions')!
    const body = Buffer.alloc(bytes, '[')
    expect(await shortestMs(operation, body)).toBeLessThan(100)
    const response = await send(operation, body)
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'SLUICE_HTTP_INVALID_REQUEST' }])
  })
})

describe('every operation', () => {
  it.each(
    Object.values<Operation>(OPERATIONS)
      .filter(({ role, path }) => role !== 'none' && !path.includes('{'))
      .map(({ method, path }) => [method, path] as const),
  )('%s %s rejects an unknown query parameter', async (method, path) => {
    const response = await fetch(`${node.origin}${path}?__proto__=1&%ff=%00&x=${'y'.repeat(4000)}`, {
      method,
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${node.adminKey}` },
      ...(method === 'GET' ? {} : { body: '{}' }),
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'SLUICE_HTTP_INVALID_REQUEST' })
  })

  it('left the service as it was', async () => {
    expect(node.errors).toEqual([])
    expect((await fetch(`${node.origin}/readyz`)).status).toBe(200)
    const { items } = (await (await node.admin('GET', '/admin/versions')).json()) as { items: unknown[] }
    expect(items).toHaveLength(1)
  })
})
