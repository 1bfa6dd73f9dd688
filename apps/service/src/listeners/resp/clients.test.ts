// The programs and libraries that people have speak to the listener as to Redis.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeCertificate, startRedis } from '@sluice/testing/servers'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../../service.fixture.ts'
import { startRealService } from '../../service.fixture.ts'
import type { Settings } from '../../settings/settings.ts'

const run = promisify(execFile)

const THROTTLE = ['CL.THROTTLE', 'user', '15', '1', '3600'] as const

async function start(settings: Partial<Settings> = {}): Promise<RunningNode> {
  const node = await startRealService({ resp: { port: 0, tls: undefined }, ...settings })
  onTestFinished(() => node.stop())
  return node
}

describe('redis-cli', () => {
  it.each(['-2', '-3'])('with %s sends any command, with a key where one is needed', async (protocol) => {
    const { respPort, adminKey } = await start({ checkKey: true })
    const cli = async (...args: readonly string[]): Promise<string> =>
      (await run('redis-cli', [protocol, '-p', String(respPort), ...args])).stdout.trim()
    expect(await cli('PING')).toContain('NOAUTH')
    const withKey = ['--no-auth-warning', '-a', adminKey!]
    expect(await cli(...withKey, 'PING')).toBe('PONG')
    expect((await cli(...withKey, ...THROTTLE)).split('\n')).toEqual(['0', '16', '15', '-1', '3600'])
    expect(await cli(...withKey, 'SLUICE.CHECK', 'RESOURCE', '/api/v1/data', 'USER', 'u1')).toContain('default-user')
  })
})

describe('redis-benchmark', () => {
  it.each([
    ['-P', '1'],
    ['-P', '16'],
    ['-3', '-P', '16'],
  ])('with %s %s %s sends many commands on many connections, and all are answered', async (...flags) => {
    const { respPort, origin } = await start()
    const count = 20_000
    const args = ['-p', String(respPort), '-n', String(count), '-c', '20', '-q', ...flags]
    await run('redis-benchmark', [...args, '-r', '100', 'CL.THROTTLE', 'k:__rand_int__', '10', '1', '3600'])
    const shown = await (await fetch(`${origin}/metrics`)).text()
    const counts = [...shown.matchAll(/sluice_resp_commands_total\{command="cl.throttle",outcome="(\w+)"\} (\d+)/g)]
    expect(Object.fromEntries(counts.map(([, outcome, value]) => [outcome, Number(value)]))).toEqual({
      ok: 1100,
      denied: count - 1100,
      error: 0,
    })
  })
})

describe('node-redis', () => {
  it.each([2, 3] as const)(
    'with RESP%i connects with a key and sends commands, alone and many at once',
    async (RESP) => {
      const { respPort, adminKey } = await start({ checkKey: true })
      const client = createClient({ url: `redis://default:${adminKey}@127.0.0.1:${respPort}`, RESP, name: 'tests' })
      await client.connect()
      onTestFinished(() => client.destroy())
      expect(await client.ping()).toBe('PONG')
      const replies = await Promise.all(Array.from({ length: 17 }, () => client.sendCommand([...THROTTLE])))
      const allowed = replies.map((reply) => (reply as unknown as readonly number[])[0])
      expect(allowed).toEqual([...Array.from({ length: 16 }, () => 0), 1])
      await expect(client.sendCommand(['CL.THROTTLE', 'k', '1', '0', '1'])).rejects.toThrow('Zero rates')
      expect(await client.clientGetName()).toBe('tests')
    },
  )
})

describe('ioredis', () => {
  it('connects with a key and pipelines commands', async () => {
    const { respPort, adminKey } = await start({ checkKey: true })
    const client = new Redis({ port: respPort, host: '127.0.0.1', password: adminKey! })
    onTestFinished(() => client.disconnect())
    expect(await client.ping()).toBe('PONG')
    const pipeline = client.pipeline()
    for (let call = 0; call < 17; call++) pipeline.call(...(THROTTLE as unknown as [string, ...string[]]))
    const replies = (await pipeline.exec()) ?? []
    expect(replies.map(([error, reply]) => [error, (reply as readonly number[])[0]])).toEqual([
      ...Array.from({ length: 16 }, () => [null, 0]),
      [null, 1],
    ])
    expect(await client.quit()).toBe('OK')
  })

  it('counts in Redis when the service does, in order, while others wait', async () => {
    await using redis = await startRedis()
    const { respPort } = await start({
      redis: {
        ...{ urls: [redis.url], isCluster: false, sentinel: undefined, prefix: 'sluice', leases: false },
        ...{ failureMode: 'closed', deadlineMs: 5000 },
      },
    })
    const clients = [1, 2].map(() => new Redis({ port: respPort, host: '127.0.0.1' }))
    onTestFinished(() => {
      for (const client of clients) client.disconnect()
    })
    const taken = await Promise.all(
      clients.map(async (client) => {
        const pipeline = client.pipeline()
        for (let call = 0; call < 20; call++) {
          pipeline.call('ECHO', String(call))
          pipeline.call(...(THROTTLE as unknown as [string, ...string[]]))
        }
        const replies = ((await pipeline.exec()) ?? []).map(([, reply]) => reply)
        expect(replies.filter((_, index) => index % 2 === 0)).toEqual(
          Array.from({ length: 20 }, (_, call) => `${call}`),
        )
        return replies.filter((reply) => Array.isArray(reply) && reply[0] === 0).length
      }),
    )
    expect(taken[0]! + taken[1]!).toBe(16)
  })
})

describe('TLS', () => {
  async function certified(
    hasClientCa: boolean,
  ): Promise<{ readonly node: RunningNode; readonly files: readonly string[] }> {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-tls-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const { certificateFile: cert, keyFile: key } = await makeCertificate(folder)
    const tls = { cert, key, clientCa: hasClientCa ? cert : undefined }
    return { node: await start({ checkKey: true, resp: { port: 0, tls } }), files: [cert, key] }
  }
  const cli = async (port: number, ...args: readonly string[]): Promise<string> =>
    (await run('redis-cli', ['-h', 'localhost', '-p', String(port), '--tls', ...args])).stdout.trim()

  it('needs a key like plain text', async () => {
    const { node, files } = await certified(false)
    expect(await cli(node.respPort, '--cacert', files[0]!, 'PING')).toContain('NOAUTH')
    const withKey = ['--no-auth-warning', '-a', node.adminKey!, 'PING']
    expect(await cli(node.respPort, '--cacert', files[0]!, ...withKey)).toBe('PONG')
  })

  it('with client certificates needs one, and no key', async () => {
    const { node, files } = await certified(true)
    const [cert, key] = files as [string, string]
    expect(await cli(node.respPort, '--cacert', cert, '--cert', cert, '--key', key, 'PING')).toBe('PONG')
    await expect(cli(node.respPort, '--cacert', cert, 'PING')).rejects.toThrow()
    expect(await (await fetch(`${node.origin}/readyz`)).text()).toContain('client certificate needed')
  })

  it('with files that cannot be read ends the start with the setting', async () => {
    const tls = { cert: '/nowhere/cert.pem', key: '/nowhere/key.pem', clientCa: undefined }
    await expect(startRealService({ resp: { port: 0, tls } })).rejects.toMatchObject({
      cause: { code: 'SLUICE_SERVICE_INVALID_SETTING' },
    })
  })
})
