// The proxies of examples/forward-auth, with the service and an app, at ports of their own.
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, ExampleProcess } from './examples-process.ts'
import { findRequirements, requirements } from './requirements.ts'
import { repositoryRoot } from './workspace.ts'

const example = join(repositoryRoot, 'examples/forward-auth')
const programs = findRequirements(requirements)

/** A proxy of the example: the file with its ports, and how it is started in a folder. */
const PROXIES = {
  nginx: {
    file: 'nginx.conf',
    args: (folder: string) => ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr', '-g', 'daemon off;'],
  },
  caddy: { file: 'Caddyfile', args: () => ['run', '--config', 'Caddyfile', '--adapter', 'caddyfile'] },
  haproxy: { file: 'haproxy.cfg', args: () => ['-db', '-f', 'haproxy.cfg'] },
} as const

const FLAGS = ['--conditions=source', '--disable-warning=ExperimentalWarning']

async function listening(program: ExampleProcess, port: number): Promise<void> {
  while (!program.hasEnded) {
    const socket = connect(port, '127.0.0.1')
    const isThere = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isThere) return
    await pause(10)
  }
  throw new Error(`It has ended too early: ${(await program.end()).complaints}`)
}

describe.each(Object.keys(PROXIES) as (keyof typeof PROXIES)[])('%s', (name) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-forward-auth-'))
  const processes: ExampleProcess[] = []
  let url = ''

  function launch(
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): ExampleProcess {
    const started = new ExampleProcess({ command, args, cwd: folder, env: { HOME: folder, ...env } })
    processes.push(started)
    return started
  }

  beforeAll(async () => {
    cpSync(example, folder, { recursive: true })
    const main = join(repositoryRoot, 'apps/service/src/main.ts')
    const settings = ['--port', '0', '--data-dir', join(folder, 'data'), '--drain-ms', '0', '--config', 'sluice.yaml']
    const service = launch(process.execPath, [...FLAGS, main, ...settings])
    const app = launch(process.execPath, ['server.js'], { PORT: '0' })
    const servicePort = await service.printed(/check API {3}http:\/\/127\.0\.0\.1:(\d+)/)
    const appPort = await app.printed(/:(\d+)\/$/m)
    const port = await freePort()
    const { file, args } = PROXIES[name]
    for (const edited of [file, 'sluice.lua']) {
      const text = readFileSync(join(folder, edited), 'utf8')
      const moved = text.replaceAll(':8080', `:${servicePort}`).replaceAll(':3000', `:${appPort}`)
      writeFileSync(join(folder, edited), moved.replaceAll(':8000', `:${port}`))
    }
    url = `http://127.0.0.1:${port}`
    await listening(launch(programs.get(name)!, args(folder)), port)
  }, 120_000)

  afterAll(async () => {
    await Promise.all(processes.map((started) => started.stop('SIGTERM')))
    rmSync(folder, { recursive: true, force: true })
  })

  it('passes on what the service allows, and tells clients of their limits', async () => {
    for (let left = 4; left >= 0; left--) {
      const { status, headers, body } = await call(`${url}/orders?page=1`)
      expect([status, body, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]).toEqual([
        '200 OK',
        'hello\n',
        '5',
        String(left),
      ])
    }
  })

  it('answers with 429 what the service denies, whatever a client says about itself', async () => {
    const headers = { 'X-Forwarded-For': '198.51.100.9', 'X-Forwarded-Uri': '/other', 'X-RateLimit-Limit': '9' }
    const denied = await call(`${url}/orders`, { headers })
    expect(denied.status).toBe('429 Too Many Requests')
    expect(Number(denied.headers['retry-after'])).toBeGreaterThan(0)
    expect([denied.headers['x-ratelimit-limit'], denied.headers['x-ratelimit-remaining']]).toEqual(['5', '0'])
  })

  it('counts other clients on their own', async () => {
    const { status, headers } = await call(url, { localAddress: '127.0.0.2' })
    expect([status, headers['x-ratelimit-remaining']]).toEqual(['200 OK', '4'])
  })
})
