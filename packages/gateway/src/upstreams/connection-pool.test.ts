import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ConnectionPool } from './connection-pool.ts'

/** An upstream that answers with the path on demand, and a pool with a number of connections to it. */
async function start(connections: number) {
  const held: { readonly path: string; readonly response: ServerResponse }[] = []
  const sockets = new Set<Socket>()
  let isHolding = true
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const path = request.url!
    if (isHolding) held.push({ path, response })
    else response.end(path)
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const pool = new ConnectionPool(new URL(`http://127.0.0.1:${port}`), { connections, pipelining: 1, allowH2: false })
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await pool.close()
  })
  const get = async (path: string): Promise<string> => {
    const { body } = await pool.request({ method: 'GET', path })
    return body.text()
  }
  const until = (count: number) => vi.waitUntil(() => held.length >= count, { interval: 2 })
  const answerAll = (): void => {
    isHolding = false
    for (const { path, response } of held.splice(0)) response.end(path)
  }
  return { pool, held, sockets, get, until, answerAll }
}

describe('the connections to an instance', () => {
  it('are as many as requests at the same time, up to their number; further requests wait in order', async () => {
    const { held, sockets, get, until, answerAll } = await start(2)
    const answers = ['/1', '/2', '/3', '/4'].map(get)
    await until(2)
    expect(held.map(({ path }) => path)).toEqual(['/1', '/2'])
    held.shift()!.response.end('/1')
    await until(2)
    expect(held.map(({ path }) => path)).toEqual(['/2', '/3'])
    answerAll()
    expect(await Promise.all(answers)).toEqual(['/1', '/2', '/3', '/4'])
    expect(sockets.size).toBe(2)
  })

  it('are used again, the last one first', async () => {
    const { sockets, get, until, answerAll } = await start(8)
    const first = [get('/a'), get('/b'), get('/c')]
    await until(3)
    answerAll()
    await Promise.all(first)
    const bytesBefore = [...sockets].map((socket) => socket.bytesRead)
    for (let index = 0; index < 5; index++) expect(await get(`/${index}`)).toBe(`/${index}`)
    const used = [...sockets].filter((socket, index) => socket.bytesRead > bytesBefore[index]!)
    expect([sockets.size, used.length]).toEqual([3, 1])
  })

  it('that break off fail their request, and the next one that waits is sent', async () => {
    const { held, get, until, answerAll } = await start(1)
    const broken = get('/broken')
    const waiting = get('/waiting')
    await until(1)
    held.shift()!.response.destroy()
    await expect(broken).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
    await until(1)
    answerAll()
    expect(await waiting).toBe('/waiting')
  })

  it('close after the requests that wait, and take no further ones', async () => {
    const { pool, get, until, held } = await start(1)
    const answers = [get('/1'), get('/2')]
    await until(1)
    let isClosed = false
    const closed = pool.close().then(() => {
      isClosed = true
    })
    await expect(get('/3')).rejects.toMatchObject({ code: 'UND_ERR_CLOSED' })
    held.shift()!.response.end('/1')
    await until(1)
    expect(isClosed).toBe(false)
    held.shift()!.response.end('/2')
    expect(await Promise.all(answers)).toEqual(['/1', '/2'])
    await closed
  })
})
