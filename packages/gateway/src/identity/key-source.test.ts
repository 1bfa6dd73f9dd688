import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FakeClock, FakeTimers } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { isKeySetUrl, readKeySource } from './key-source.ts'

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`
}

function scene() {
  const timers = new FakeTimers(new FakeClock())
  return { timers, read: (source: string) => readKeySource(source, timers) }
}

describe('a key set', () => {
  it('is read from a URL', async () => {
    const { read, timers } = scene()
    const connections: unknown[] = []
    const url = await serve((request, response) => {
      connections.push(request.headers.connection)
      response.end(`{"url":"${request.url}"}`)
    })
    expect(await read(url)).toBe('{"url":"/keys"}')
    expect(connections).toEqual(['close'])
    expect(timers.pending).toBe(0)
  })

  it('is read from a file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-keys-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const path = join(folder, 'keys.json')
    await writeFile(path, '{"keys":[]}')
    expect(await scene().read(path)).toBe('{"keys":[]}')
    await expect(scene().read(`${path}.missing`)).rejects.toThrow('ENOENT')
    expect([isKeySetUrl(path), isKeySetUrl('HTTPS://issuer.test')]).toEqual([false, true])
  })

  it.each([404, 500, 302])('is not taken from an answer with status %d', async (status) => {
    const { read, timers } = scene()
    let requests = 0
    const url = await serve((_, response) => {
      requests++
      response.writeHead(status, { location: '/elsewhere' }).end('{"keys":[]}')
    })
    await expect(read(url)).rejects.toThrow(`the answer has status ${status}`)
    expect([requests, timers.pending]).toEqual([1, 0])
  })

  it('is not longer than 1 MiB', async () => {
    const { read } = scene()
    const url = await serve((_, response) => void response.end('x'.repeat(1024 * 1024 + 1)))
    await expect(read(url)).rejects.toThrow('the answer is longer than 1048576 bytes')
  })

  it('comes within 5 seconds', async () => {
    const { read, timers } = scene()
    const arrived = Promise.withResolvers<void>()
    const url = await serve((_, response) => {
      response.writeHead(200).write('{"keys":')
      arrived.resolve()
    })
    const reading = read(url)
    const failed = expect(reading).rejects.toThrow('the key set cannot be loaded: no answer within 5000 ms')
    await arrived.promise
    await timers.advance(5000)
    await failed
  })

  it('cannot come from a port without a listener', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    server.close()
    await once(server, 'close')
    await expect(scene().read(`http://127.0.0.1:${port}/`)).rejects.toThrow(/cannot be loaded: .*ECONNREFUSED/)
  })
})
