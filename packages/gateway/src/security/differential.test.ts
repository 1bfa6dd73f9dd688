// The smuggling corpus through nginx and HAProxy as well: what two of the most used proxies do with it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  configOf,
  RawClient,
  routeOf,
  startGateway,
  startUpstream,
  type TestUpstream,
  turns,
} from '../gateway.test.support.ts'
import { SMUGGLING_CASES } from './smuggling-corpus.test.support.ts'

const PROGRAMS = { nginx: '/usr/sbin/nginx', haproxy: '/usr/sbin/haproxy' } as const

const CONFIGS = {
  nginx: (port: number, to: number, folder: string) => `daemon off; error_log stderr emerg; pid ${folder}/pid;
events {}
http {
  access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${to}; proxy_http_version 1.1; } }
}`,
  haproxy: (port: number, to: number) => `defaults
  mode http
  timeout client 2s
  timeout server 2s
  timeout connect 2s
frontend in
  bind 127.0.0.1:${port}
  default_backend out
backend out
  server app 127.0.0.1:${to}
`,
} as const

async function startProxy(name: keyof typeof PROGRAMS, to: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`))
  const port = await freePort()
  const file = join(folder, 'config')
  writeFileSync(file, CONFIGS[name](port, to, folder))
  const args = name === 'nginx' ? ['-p', folder, '-c', file, '-e', 'stderr'] : ['-db', '-f', file]
  const child: ChildProcess = spawn(PROGRAMS[name], args, { stdio: 'ignore' })
  onTestFinished(async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    rmSync(folder, { recursive: true, force: true })
  })
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${name} has ended`)
    const socket = connect(port, '127.0.0.1')
    const isThere = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isThere) return port
    await turns(10)
  }
}

/** Requests that reach the upstream for these bytes: method, target and body of each. */
async function passed(port: number, app: TestUpstream, bytes: string): Promise<readonly string[]> {
  const before = app.received.length
  const client = new RawClient(port)
  client.send(bytes)
  while (!(client.isClosed || /HTTP\/1\.[01] \d\d\d [\s\S]*\r\n\r\n/.test(client.text))) await turns(1)
  await turns(20)
  client.socket.destroy()
  return app.received.slice(before).map(({ method, url, body }) => `${method} ${url} ${JSON.stringify(body)}`)
}

describe.skipIf(!Object.values(PROGRAMS).every((path) => existsSync(path)))('nginx and HAProxy', () => {
  it('agree with the gateway on every request that all of them pass on, and are not stricter together', async () => {
    const app = await startUpstream()
    const { port } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const nginx = await startProxy('nginx', app.port)
    const haproxy = await startProxy('haproxy', app.port)
    const differences: string[] = []
    const looser: string[] = []
    for (const { title, bytes } of SMUGGLING_CASES.filter((each) => !each.title.includes('HEAD'))) {
      const [ours = ''] = await passed(port, app, bytes)
      const [theirs = ''] = await passed(nginx, app, bytes)
      const [others = ''] = await passed(haproxy, app, bytes)
      if (ours === '') continue
      for (const [name, seen] of Object.entries({ nginx: theirs, haproxy: others })) {
        if (seen !== '' && seen !== ours) differences.push(`${title}: ${ours}, ${name}: ${seen}`)
      }
      if (theirs === '' && others === '') looser.push(title)
    }
    expect(differences).toEqual([])
    expect(looser).toEqual([])
  })
})
