// The programs that deploy/ is written for read its files: promtool, nginx, HAProxy and systemd. The proxies are
// started, with ports of their own and a server behind them that answers with what it was sent.
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
import { findProgram, findRequirements, requirements } from './requirements.ts'

const run = promisify(execFile)

const programs = findRequirements(requirements)

const POLL_MS = 20

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

/** Where a proxy listens, and the two nodes behind it. */
interface Ports {
  readonly own: number
  readonly nodes: readonly [number, number]
}

/** The two nodes of a configuration, at ports of this machine. */
function withNodes(text: string, [one, other]: Ports['nodes']): string {
  return text.replaceAll('10.0.0.11:8080', `127.0.0.1:${one}`).replaceAll('10.0.0.12:8080', `127.0.0.1:${other}`)
}

/** A proxy under test. */
interface Proxy {
  readonly name: 'nginx' | 'haproxy'
  /** The configuration of deploy/ with other ports, in a folder of its own, and how it is started. */
  readonly prepare: (folder: string, ports: Ports) => readonly string[]
  /** What makes the program look at the configuration alone. */
  readonly check: readonly string[]
  readonly start: readonly string[]
  /** The address that the service receives when a client sends a forged one. */
  readonly forwarded: string
}

const PROXIES: readonly Proxy[] = [
  {
    name: 'nginx',
    prepare: (folder, { own, nodes }) => {
      const site = readDeployFile('nginx/sluice.conf').replace('listen 80;', `listen 127.0.0.1:${own};`)
      writeFileSync(join(folder, 'sluice.conf'), withNodes(site, nodes))
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
    prepare: (folder, { own, nodes }) => {
      const file = join(folder, 'haproxy.cfg')
      const text = readDeployFile('haproxy/haproxy.cfg').replace('bind :80', `bind 127.0.0.1:${own}`)
      writeFileSync(file, withNodes(text, nodes))
      return ['-f', file]
    },
    check: ['-c'],
    start: ['-db'],
    forwarded: '127.0.0.1',
  },
]

/** Stands for a node: answers everything with its port and with the headers and the body that it was sent. */
class EchoNode {
  isReady = true
  readonly #server = createServer(async (request, response) => {
    const body = (await request.setEncoding('utf8').toArray()).join('')
    response.statusCode = request.url === '/readyz' && !this.isReady ? 503 : 200
    response.end(JSON.stringify({ port: this.port, url: request.url, headers: request.headers, body }))
  })

  static async start(): Promise<EchoNode> {
    const node = new EchoNode()
    node.#server.listen(0, '127.0.0.1')
    await once(node.#server, 'listening')
    onTestFinished(() => node.stop())
    return node
  }

  get port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? 0
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }
}

/** What an {@link EchoNode} answers. */
interface Echo {
  readonly port: number
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

async function untilUp(url: string, proxy: ExampleProcess): Promise<void> {
  for (;;) {
    const answer = await fetch(url).catch(() => undefined)
    await answer?.arrayBuffer()
    if (answer?.status === 200) return
    if (proxy.hasEnded) throw new Error((await proxy.end()).complaints)
    await pause(POLL_MS)
  }
}

/** A proxy that answers, and the nodes behind it. */
async function startProxy({ name, prepare, check, start }: Proxy) {
  const folder = temporaryFolder()
  const nodes = [await EchoNode.start(), await EchoNode.start()] as const
  const own = await freePort()
  const args = prepare(folder, { own, nodes: [nodes[0].port, nodes[1].port] })
  const program = programs.get(name)!
  await run(program, [...check, ...args])
  const proxy = new ExampleProcess({ command: program, args: [...args, ...start], cwd: folder })
  onTestFinished(async () => void (await proxy.stop('SIGTERM')))
  const origin = `http://127.0.0.1:${own}`
  await untilUp(`${origin}/readyz`, proxy)
  return { origin, nodes }
}

const BODY = '{"userId":"user-123","resource":"/orders"}'

async function askCheck(origin: string): Promise<Echo> {
  const headers = { 'X-Forwarded-For': '192.0.2.1', Authorization: 'Bearer slk_test' }
  const answer = await fetch(`${origin}/internal/ratelimit/check`, { method: 'POST', headers, body: BODY })
  expect(answer.status).toBe(200)
  return (await answer.json()) as Echo
}

/** The ports of the nodes that answer the next checks. */
async function nodesThatAnswer(origin: string): Promise<ReadonlySet<number>> {
  const ports = new Set<number>()
  for (let count = 0; count < CHECKS; count++) ports.add((await askCheck(origin)).port)
  return ports
}

const CHECKS = 10

describe.each(PROXIES)('$name', (proxy) => {
  it('hands on requests and the address of the client, and keeps metrics to itself', async () => {
    const { origin } = await startProxy(proxy)
    const echo = await askCheck(origin)
    expect(echo.url).toBe('/internal/ratelimit/check')
    expect(echo.body).toBe(BODY)
    expect(echo.headers['x-forwarded-for']).toBe(proxy.forwarded)
    expect(echo.headers.authorization).toBe('Bearer slk_test')

    const metrics = await fetch(`${origin}/metrics`)
    await metrics.arrayBuffer()
    expect(metrics.status).toBe(404)
  })

  it('asks both nodes, and the other one alone when one is gone', async () => {
    const { origin, nodes } = await startProxy(proxy)
    const [one, other] = nodes
    expect(await nodesThatAnswer(origin)).toEqual(new Set([one.port, other.port]))
    await one.stop()
    expect(await nodesThatAnswer(origin)).toEqual(new Set([other.port]))
  })
})

describe('haproxy', () => {
  it('sends a node that drains no more requests', async () => {
    const { origin, nodes } = await startProxy(PROXIES.find(({ name }) => name === 'haproxy')!)
    const [one, other] = nodes
    one.isReady = false
    while ((await nodesThatAnswer(origin)).has(one.port)) await pause(POLL_MS)
    expect(await nodesThatAnswer(origin)).toEqual(new Set([other.port]))
  })
})
