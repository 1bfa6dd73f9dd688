import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { configOf, listen, RawClient, routeOf, startGateway, turns, until } from '../gateway.test.support.ts'
import { SMUGGLING_CASES } from './smuggling-corpus.test.support.ts'

/** A request as an upstream reads it that follows the standard to the letter. */
interface StrictRequest {
  readonly line: string
  readonly headers: readonly string[]
  readonly body: string
}

/** Keeps every byte, answers each request, and complains about everything that could be read in two ways. */
class StrictUpstream {
  readonly requests: StrictRequest[] = []
  readonly complaints: string[] = []
  url = ''

  async start(): Promise<this> {
    const server = createServer((socket) => this.#serve(socket))
    const { port } = await listen(server)
    this.url = `http://127.0.0.1:${port}`
    return this
  }

  #serve(socket: Socket): void {
    let text = ''
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      for (let used = this.#read(text, socket); used > 0; used = this.#read(text, socket)) text = text.slice(used)
    })
  }

  /** Reads one request from the beginning of `text`; returns its length, or 0 if it is not complete. */
  #read(text: string, socket: Socket): number {
    const end = text.indexOf('\r\n\r\n')
    if (end < 0) return 0
    const [line = '', ...headers] = text.slice(0, end).split('\r\n')
    if (!/^[A-Z]+ \/[\x21-\x7e]* HTTP\/1\.1$/.test(line)) this.complaints.push(`request line ${JSON.stringify(line)}`)
    for (const header of headers) {
      if (!/^[!#$%&'*+.^_`|~\w-]+: [^\0\r\n]*$/.test(header)) this.complaints.push(`header ${JSON.stringify(header)}`)
    }
    const lengths = headers.filter((header) => /^content-length:/i.test(header))
    const encodings = headers.filter((header) => /^transfer-encoding:/i.test(header))
    if (lengths.length + encodings.length > 1) this.complaints.push(`framing ${[...lengths, ...encodings].join()}`)
    const body = readBody(text.slice(end + 4), lengths[0], encodings[0])
    if (body === undefined) return 0
    this.requests.push({ line, headers, body: body.content })
    const isHead = line.startsWith('HEAD')
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${isHead ? 0 : 2}\r\n\r\n${isHead ? '' : 'ok'}`)
    return end + 4 + body.used
  }
}

function readBody(
  text: string,
  length: string | undefined,
  encoding: string | undefined,
): { content: string; used: number } | undefined {
  if (encoding === undefined) {
    const size = Number(length?.slice(length.indexOf(':') + 1) ?? 0)
    return text.length < size ? undefined : { content: text.slice(0, size), used: size }
  }
  let content = ''
  let used = 0
  for (;;) {
    const head = /^([\da-f]+)\r\n/.exec(text.slice(used))
    if (head === null) return undefined
    const size = Number.parseInt(head[1]!, 16)
    const start = used + head[0].length
    if (text.length < start + size + 2) return undefined
    content += text.slice(start, start + size)
    used = start + size + 2
    if (size === 0) return { content, used }
  }
}

describe('requests that parsers read differently', () => {
  it.each(SMUGGLING_CASES)('$title', async ({ bytes, expected }) => {
    const upstream = await new StrictUpstream().start()
    const { port } = await startGateway({ config: configOf([routeOf()], { app: [upstream.url] }) })
    const client = new RawClient(port)
    client.send(bytes)
    if (expected === 'rejected') {
      expect(await client.closed()).toMatch(/^HTTP\/1\.1 (?:4\d\d|501) /)
      expect(client.text.match(/HTTP\/1\.1 2/g)).toBeNull()
    } else await until(() => /HTTP\/1\.1 [24]\d\d [\s\S]*\r\n\r\n/.test(client.text))
    await turns(20)
    client.socket.end()
    expect(upstream.complaints).toEqual([])
    expect(upstream.requests.map(({ line }) => line).filter((line) => line.includes('smuggled'))).toEqual([])
    expect(upstream.requests).toHaveLength(expected === 'rejected' ? 0 : 1)
  })

  it('pass on a body exactly as it was, whatever it holds', async () => {
    const upstream = await new StrictUpstream().start()
    const { port } = await startGateway({ config: configOf([routeOf()], { app: [upstream.url] }) })
    const parts = fc.array(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 60 }), { maxLength: 5 })
    const method = fc.constantFrom('POST', 'PUT', 'DELETE', 'OPTIONS', 'GET', 'PATCH')
    await fc.assert(
      fc.asyncProperty(parts, method, fc.boolean(), async (chunks, verb, isChunked) => {
        const before = upstream.requests.length
        const body = isChunked
          ? `${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`
          : chunks.join('')
        const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`
        const client = new RawClient(port)
        client.send(`${verb} /outer HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${framing}\r\n\r\n${body}`)
        expect(await client.closed()).toMatch(/^HTTP\/1\.1 200 /)
        expect(upstream.requests.slice(before)).toMatchObject([{ body: chunks.join('') }])
        expect(upstream.complaints).toEqual([])
      }),
      { numRuns: 60 },
    )
  })
})

describe('bytes of any kind', () => {
  let upstream: StrictUpstream

  beforeAll(() => {
    upstream = new StrictUpstream()
  })

  it('never bring more requests to the upstream than answers to the client', async () => {
    await upstream.start()
    const { port, gateway } = await startGateway({ config: configOf([routeOf()], { app: [upstream.url] }) })
    const pieces = fc.constantFrom(
      ...['GET', 'POST', ' ', '/', '/a', ' HTTP/1.1', 'HTTP/1.0', '\r\n', '\n', '\r', '\r\n\r\n', 'Host: a', 'Host:'],
      ...['Content-Length: 3', 'Content-Length: 0', 'Transfer-Encoding: chunked', 'Transfer-Encoding: gzip', 'abc'],
      ...[
        '0\r\n\r\n',
        '3\r\nabc\r\n',
        'Connection: close',
        'Connection: upgrade',
        'Upgrade: websocket',
        '\x00',
        '\xff',
      ],
      ...['Expect: 100-continue', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'X: y'],
    )
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { minLength: 1, maxLength: 14 }), async (parts) => {
        const before = upstream.requests.length
        const client = new RawClient(port)
        await once(client.socket, 'connect')
        client.send(parts.join(''))
        client.socket.end()
        const answers = (await client.closed()).match(/HTTP\/1\.1 [2-5]\d\d/g) ?? []
        expect(upstream.complaints).toEqual([])
        expect(upstream.requests.length - before).toBeLessThanOrEqual(answers.length)
      }),
      { numRuns: 300 },
    )
    await until(() => gateway.inFlight === 0)
  })
})
