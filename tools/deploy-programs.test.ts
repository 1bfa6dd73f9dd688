// The programs that deploy/ is written for read its files: promtool, nginx, HAProxy and systemd. The proxies are started, with
// ports of their own and a server behind them that answers with what it was sent.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { deployPath, readDeployFile } from './deploy.test.support.ts'
import { ExampleProcess } from './examples-process.ts'
import { ensureRequirements, findProgram, requirements } from './requirements.ts'

const run = promisify(execFile)

const programs = ensureRequirements(requirements)

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-deploy-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

describe('promtool', () => {
  const promtool = findProgram('promtool') ?? 'promtool'

  it('finds no mistake in the rules and the configuration', async () => {
    const files = ['rules.yaml', 'alerts.yaml'].map((file) => deployPath(`prometheus/${file}`))
    await run(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', ...files])
    await run(promtool, ['check', 'config', deployPath('prometheus/prometheus.yaml')])
  })

  it('sees each alert fire when it should', async () => {
    const { stdout } = await run(promtool, ['test', 'rules', deployPath('prometheus/alerts.test.yaml')])
    expect(stdout).toContain('SUCCESS')
  })
})

describe('systemd', () => {
  it('takes the unit, and calls it hardly exposed', async () => {
    const folder = temporaryFolder()
    const unit = join(folder, 'sluice.service')
    // It asks for programs at the places that the unit names.
    const text = readDeployFile('systemd/sluice.service').replace('/usr/bin/node ', `${process.execPath} `)
    writeFileSync(unit, text)
    const verified = await run(programs.get('systemd-analyze')!, ['verify', '--man=no', unit])
    expect(verified.stderr.split('\n').filter((line) => line.includes('sluice.service'))).toEqual([])
    // Ends with another code when the level is above 2.0 of 10.
    await run(programs.get('systemd-analyze')!, ['security', '--offline=yes', '--threshold=20', unit])
  })
})

/** A proxy under test. */
interface Proxy {
  readonly name: 'nginx' | 'haproxy'
  /** The configuration of deploy/ with other ports, in a folder of its own, and how it is started. */
  readonly prepare: (folder: string, ports: { readonly own: number; readonly service: number }) => readonly string[]
  /** What makes the program look at the configuration alone. */
  readonly check: readonly string[]
  readonly start: readonly string[]
  /** What the service is told when a client sends an address of its own. */
  readonly forwarded: string
}

const PROXIES: readonly Proxy[] = [
  {
    name: 'nginx',
    prepare: (folder, { own, service }) => {
      const site = readDeployFile('nginx/sluice.conf')
        .replace('listen 80;', `listen 127.0.0.1:${own};`)
        .replaceAll(/10\.0\.0\.1[12]:8080/g, `127.0.0.1:${service}`)
      writeFileSync(join(folder, 'sluice.conf'), site)
      const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`)
      writeFileSync(
        join(folder, 'nginx.conf'),
        `pid nginx.pid; error_log stderr; events {} http { access_log off; ${places.join(' ')} include sluice.conf; }`,
      )
      return ['-p', folder, '-c', join(folder, 'nginx.conf')]
    },
    check: ['-t'],
    start: ['-g', 'daemon off;'],
    forwarded: '192.0.2.1, 127.0.0.1',
  },
  {
    name: 'haproxy',
    prepare: (folder, { own, service }) => {
      const file = join(folder, 'haproxy.cfg')
      const text = readDeployFile('haproxy/haproxy.cfg')
        .replace('bind :80', `bind 127.0.0.1:${own}`)
        .replaceAll(/10\.0\.0\.1[12]:8080/g, `127.0.0.1:${service}`)
      writeFileSync(file, text)
      return ['-f', file]
    },
    check: ['-c'],
    start: ['-db'],
    forwarded: '127.0.0.1',
  },
]

/** Answers everything with the headers and the body that it was sent. */
async function startEcho(): Promise<number> {
  const server = createServer(async (request, response) => {
    const body = (await request.setEncoding('utf8').toArray()).join('')
    response.end(JSON.stringify({ url: request.url, headers: request.headers, body }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  })
  return (server.address() as AddressInfo).port
}

async function untilUp(url: string, proxy: ExampleProcess): Promise<void> {
  for (;;) {
    const answer = await fetch(url).catch(() => undefined)
    await answer?.arrayBuffer()
    if (answer?.status === 200) return
    if (proxy.hasEnded) throw new Error((await proxy.end()).complaints)
    await pause(20)
  }
}

describe.each(PROXIES)('$name', ({ name, prepare, check, start, forwarded }) => {
  it('hands on requests and the address of the client, and keeps metrics to itself', async () => {
    const folder = temporaryFolder()
    const ports = { own: await freePort(), service: await startEcho() }
    const args = prepare(folder, ports)
    const program = programs.get(name)!
    await run(program, [...check, ...args])

    const proxy = new ExampleProcess({ command: program, args: [...args, ...start], cwd: folder })
    onTestFinished(async () => void (await proxy.stop('SIGTERM')))
    const origin = `http://127.0.0.1:${ports.own}`
    await untilUp(`${origin}/readyz`, proxy)

    const body = '{"userId":"user-123","resource":"/orders"}'
    const headers = { 'X-Forwarded-For': '192.0.2.1', Authorization: 'Bearer slk_test' }
    const answer = await fetch(`${origin}/internal/ratelimit/check`, { method: 'POST', headers, body })
    const seen = (await answer.json()) as { url: string; headers: IncomingHttpHeaders; body: string }
    expect(seen.url).toBe('/internal/ratelimit/check')
    expect(seen.body).toBe(body)
    expect(seen.headers['x-forwarded-for']).toBe(forwarded)
    expect(seen.headers.authorization).toBe('Bearer slk_test')

    const metrics = await fetch(`${origin}/metrics`)
    await metrics.arrayBuffer()
    expect(metrics.status).toBe(404)
  })
})
