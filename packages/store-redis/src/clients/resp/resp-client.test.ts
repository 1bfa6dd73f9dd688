import { spawnSync } from 'node:child_process'
import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'
import { inspect } from 'node:util'
import { freePort, startRedis } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readRedisUrl } from '../../connection/redis-url.ts'
import { RespClient } from './resp-client.ts'

function clientOf(url: string): RespClient {
  const client = new RespClient(readRedisUrl(url), undefined)
  onTestFinished(() => client.destroy())
  return client
}

/** A server that handles connections with `meets`. Returns its URL. */
async function serverThat(meets: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    meets(socket)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => void server.close(resolve))
  })
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Greets as a server does, and answers everything after that with the text. */
function greetsAndThen(text: string): (socket: Socket) => void {
  return (socket) => {
    socket.once('data', () => {
      socket.write('*2\r\n$1\r\n1\r\n$1\r\n2\r\n')
      socket.on('data', () => socket.write(text))
    })
  }
}

async function redis(): Promise<{ readonly url: string; readonly port: number }> {
  const server = await startRedis()
  onTestFinished(() => server.close())
  return server
}

const messageOf = (error: Error): string => error.message

describe('a client without a package', () => {
  it('gives each of many commands its own reply, in order, whatever their sizes', async () => {
    const client = clientOf((await redis()).url)
    await client.connect()
    expect([client.isOpen, client.isReady()]).toEqual([true, true])
    const sizes = [0, 1, 70_000, 3, 2_000_000, 16_384, 5]
    const sent = sizes.map((size) => client.send(['ECHO', Buffer.alloc(size, size % 256)]))
    expect((await Promise.all(sent)).map((reply) => (reply as Buffer).length)).toEqual(sizes)
    const wrong = client.send(['INCR'])
    const right = client.send(['ECHO', 'é'])
    await expect(wrong).rejects.toThrow('ERR wrong number of arguments')
    expect(String(await right)).toBe('é')
  })

  it('has written a command when it returns: not a turn of the event loop later', async () => {
    const { url, port } = await redis()
    const client = clientOf(url)
    await client.connect()
    const sent = client.send(['SET', 'key', 'written'])
    // Another process asks, while this one stands still.
    const asks = `const socket = require('node:net').connect(${port}, '127.0.0.1', () => socket.write('GET key\\r\\n'))
      socket.on('data', (data) => { console.log(String(data)); socket.destroy() })`
    const { stdout } = spawnSync(process.execPath, ['-e', asks], { encoding: 'utf8', timeout: 30_000 })
    expect(stdout).toContain('written')
    await sent
  })

  it('says what the server said that turned it away', async () => {
    const server = await startRedis({ password: 'right' })
    onTestFinished(() => server.close())
    const wrong = clientOf(`redis://:wrong@127.0.0.1:${server.port}`)
    await expect(wrong.connect()).rejects.toThrow(/^WRONGPASS /)
    expect(wrong.isReady()).toBe(false)
    const unknown = clientOf(`redis://stranger@127.0.0.1:${server.port}`)
    await expect(unknown.connect()).rejects.toThrow(/^WRONGPASS /)
    const tooFar = clientOf(`redis://:right@127.0.0.1:${server.port}/9999`)
    await expect(tooFar.connect()).rejects.toThrow(/DB index is out of range.*SELECT 9999/)
  })

  it('is ready for a server that wants a password and was given none: its answers say so', async () => {
    const server = await startRedis({ password: 'right' })
    onTestFinished(() => server.close())
    const client = clientOf(`redis://127.0.0.1:${server.port}`)
    await client.connect()
    await expect(client.send(['GET', 'x'])).rejects.toThrow(/^NOAUTH /)
  })

  it('never repeats a password that a server repeats', async () => {
    const repeats = (socket: Socket): void => {
      socket.once('data', () => {
        socket.write(
          "-ERR unknown command 'AUTH', with args beginning with: 'bob' 's3cret' \r\n-NOAUTH Authentication " +
            'required.\r\n',
        )
      })
    }
    const url = new URL(await serverThat(repeats))
    const client = clientOf(`redis://bob:s3cret@${url.host}`)
    const error = (await client.connect().catch((reason: unknown) => reason)) as Error
    expect(error.message).toBe("ERR unknown command 'AUTH'")
    expect(inspect(error)).not.toMatch(/s3cret|bob/)
  })

  it.each(['ERR max number of clients reached', 'DENIED Redis is running in protected mode'])(
    'is not connected to one that answers %s',
    async (answer) => {
      const url = await serverThat((socket) => void socket.end(`-${answer}\r\n`))
      await expect(clientOf(url).connect()).rejects.toThrow(answer)
    },
  )

  it.each(['LOADING Redis is loading the dataset in memory', 'NOPERM no permissions', 'BUSY Redis is busy'])(
    'is connected to one that answers %s',
    async (answer) => {
      const client = clientOf(
        await serverThat((socket) => void socket.once('data', () => socket.write(`-${answer}\r\n`))),
      )
      await client.connect()
      expect(client.isReady()).toBe(true)
    },
  )

  it('says to whom it could not connect, also where a name has several addresses', async () => {
    const port = await freePort()
    await expect(clientOf(`redis://127.0.0.1:${port}`).connect()).rejects.toThrow(`ECONNREFUSED 127.0.0.1:${port}`)
    await expect(clientOf(`redis://localhost:${port}`).connect()).rejects.toThrow(`ECONNREFUSED 127.0.0.1:${port}`)
    await expect(clientOf('redis://no-such-host.invalid').connect()).rejects.toThrow('no-such-host.invalid')
  })

  it.each([
    ['hangs up', (socket: Socket) => void socket.destroy(), /closed|ECONNRESET/],
    ['says goodbye', (socket: Socket) => void socket.end(), /closed the connection/],
    [
      'is something else',
      (socket: Socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      /does not speak RESP/,
    ],
    ['sends too many replies', (socket: Socket) => void socket.write('+OK\r\n+OK\r\n+OK\r\n'), /without a command/],
  ])('is not connected to one that %s', async (_what, meets, told) => {
    const client = clientOf(await serverThat(meets))
    await expect(client.connect()).rejects.toThrow(told)
    expect([client.isOpen, client.isReady()]).toEqual([false, false])
  })

  it('rejects everything in flight when a reply is malformed, and emits "end"', async () => {
    const client = clientOf(await serverThat(greetsAndThen('?\r\n')))
    await client.connect()
    let ends = 0
    client.on('end', () => void ends++)
    const sent = [1, 2, 3].map(() => client.send(['PING']).catch(messageOf))
    const told = expect.stringContaining('does not speak RESP')
    expect(await Promise.all(sent)).toEqual([told, told, told])
    expect([client.isOpen, client.isReady(), ends]).toEqual([false, false, 1])
    await expect(client.send(['PING'])).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
  })

  it('can be ended while it connects and when it is connected, and connected again', async () => {
    const { url } = await redis()
    const client = clientOf(url)
    const first = client.connect().catch(messageOf)
    client.destroy()
    expect(await first).toBe('the connection was given up')
    await client.connect()
    const lost = client.send(['PING']).catch(messageOf)
    client.destroy()
    client.destroy()
    expect(await lost).toBe('the connection was given up')
    await client.connect()
    expect(String(await client.send(['PING']))).toBe('PONG')
  })

  it('reads nothing of a reply that broke off on the connection before', async () => {
    const client = clientOf(await serverThat(greetsAndThen('+OK\r\n$100\r\nhalf')))
    await client.connect()
    // What follows has come with it.
    await client.send(['PING'])
    client.destroy()
    await client.connect()
    expect(client.isReady()).toBe(true)
  })

  it('reads nothing of a connection that it has given up', async () => {
    const { url } = await redis()
    const client = clientOf(url)
    await client.connect()
    const lost = client.send(['ECHO', 'old']).catch(messageOf)
    client.destroy()
    await client.connect()
    expect(String(await client.send(['ECHO', 'new']))).toBe('new')
    expect(await lost).toBe('the connection was given up')
  })
})
