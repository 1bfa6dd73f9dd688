import type { ServerResponse } from 'node:http'
import { problemDocument } from '@sluice/contract'
import { describe, expect, it } from 'vitest'
import type { Client } from './client.ts'
import type { ClientOptions } from './client-options.ts'
import { createClient } from './create-client.ts'
import { ALL_OPERATIONS, TableServer } from './table-server.test.support.ts'

/** A server that streams as `write` says, and a client of it. */
async function streaming(
  write: (response: ServerResponse) => void,
  options: Partial<ClientOptions> = {},
): Promise<{ client: Client; closed: Promise<void> }> {
  const server = await TableServer.start()
  const closed = Promise.withResolvers<void>()
  server.answer = (_, response) => {
    response.on('close', closed.resolve)
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    write(response)
    return true
  }
  return { client: createClient({ url: server.url, ...options }), closed: closed.promise }
}

async function checksOf(client: Client): Promise<{ checks: readonly number[]; error: unknown }> {
  const checks: number[] = []
  try {
    for await (const { checks: count } of client.stream('live')) checks.push(count)
    return { checks, error: undefined }
  } catch (error) {
    return { checks, error }
  }
}

describe('stream', () => {
  it('is for the operations that go on', () => {
    expect(ALL_OPERATIONS.filter(({ streams }) => streams).map(({ id }) => id)).toEqual([
      'live',
      'overviewLive',
      'liveDecisions',
    ])
  })

  it('gives the data of each event until the service ends it', async () => {
    const { client } = await streaming((response) => {
      response.write(': hello\n\nevent: sample\nid: 1\ndata: {"checks":1}\n\nevent: sample\nda', () =>
        response.end('ta: {"checks":\ndata: 2}\n\ndata: {"checks":3}'),
      )
    })
    // What is not ended by an empty line was not sent whole.
    expect(await checksOf(client)).toEqual({ checks: [1, 2], error: undefined })
  })

  it('ends the connection when the reader has enough', async () => {
    const { client, closed } = await streaming((response) => response.write('data: {"checks":1}\n\n'))
    for await (const { checks } of client.stream('live')) {
      expect(checks).toBe(1)
      break
    }
    await closed
  })

  it('ends with the reason of the caller', async () => {
    const controller = new AbortController()
    const { client, closed } = await streaming((response) => response.write('data: {"checks":1}\n\n'))
    const read = async (): Promise<void> => {
      for await (const _ of client.stream('live', { signal: controller.signal })) controller.abort('enough')
    }
    await expect(read()).rejects.toBe('enough')
    await closed
  })

  it('says when the connection breaks', async () => {
    const { client } = await streaming((response) => {
      response.write('data: {"checks":1}\n\n', () => response.destroy())
    })
    expect(await checksOf(client)).toMatchObject({ error: { code: 'SLUICE_CLIENT_UNREACHABLE' } })
  })

  it('says when nothing comes any more', async () => {
    const waits: number[] = []
    // Time passes at once after the first event.
    const sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
      waits.push(ms)
      const isAfterEvent = waits.length === 3
      return isAfterEvent ? Promise.resolve() : new Promise((_, reject) => signal?.addEventListener('abort', reject))
    }
    const { client } = await streaming((response) => response.write('data: {"checks":1}\n\n'), { sleep, timeoutMs: 70 })
    expect(await checksOf(client)).toMatchObject({ checks: [1], error: { code: 'SLUICE_CLIENT_TIMEOUT' } })
    expect(waits).toEqual([70, 30_000, 30_000])
  })

  it('lets the reader take its time', async () => {
    const waits: AbortSignal[] = []
    const sleep = (_: number, signal?: AbortSignal): Promise<void> => {
      if (signal !== undefined) waits.push(signal)
      return new Promise((_resolve, reject) => signal?.addEventListener('abort', reject))
    }
    const { client } = await streaming((response) => response.write('data: {"checks":1}\n\n'), { sleep })
    for await (const _ of client.stream('live')) {
      expect(waits.map(({ aborted }) => aborted)).toEqual([true, true])
      break
    }
  })

  it('says when an event is not what is sent', async () => {
    const { client } = await streaming((response) => response.end('data: {\n\n'))
    expect(await checksOf(client)).toMatchObject({ error: { code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER' } })
  })

  it('says when an event never ends', async () => {
    const { client } = await streaming((response) => response.end('x'.repeat(1_100_000)))
    expect(await checksOf(client)).toMatchObject({ error: { code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER' } })
  })

  it('rejects with the problem that is answered in its place', async () => {
    const server = await TableServer.start()
    server.answer = (_, response) => {
      response.writeHead(401, { 'Content-Type': 'application/problem+json' })
      response.end(JSON.stringify(problemDocument('SLUICE_HTTP_UNAUTHORIZED', { detail: 'No key.' })))
      return true
    }
    const client = createClient({ url: server.url })
    expect(await checksOf(client)).toMatchObject({ error: { code: 'SLUICE_HTTP_UNAUTHORIZED', status: 401 } })
  })

  it('is not satisfied with another answer', async () => {
    const server = await TableServer.start()
    server.answer = (_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
      return true
    }
    const client = createClient({ url: server.url })
    expect(await checksOf(client)).toMatchObject({ error: { code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER' } })
  })
})
