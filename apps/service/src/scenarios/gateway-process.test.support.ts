import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

// Gateways in processes of their own, in front of an upstream, under load.

/** Clients that send requests at the same time. */
export const CLIENTS = 16

/** Requests to `/limited` that are admitted, from all callers together. */
export const LIMIT = 200

/** A folder for the files of gateways, and an upstream that they stand in front of. */
export interface Site {
  readonly folder: string
  readonly upstreamPort: number
  close(): Promise<void>
}

export async function openSite(): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-gateways-'))
  const upstream = createServer((request, response) => {
    request.resume()
    request.once('end', () => response.end(request.url))
  }).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const close = async (): Promise<void> => {
    upstream.closeAllConnections()
    await new Promise((resolve) => upstream.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  }
  return { folder, upstreamPort: (upstream.address() as AddressInfo).port, close }
}

/** Writes a configuration file, or another one in its place. `paths`: what its routes are for. */
export function writeConfig({ folder, upstreamPort }: Site, name: string, paths: readonly string[]): string {
  const file = join(folder, name)
  const routes = paths.map((path, index) => `  - { name: r${index}, match: { path: "${path}" }, upstream: app }`)
  writeFileSync(
    `${file}.new`,
    [
      'rules:',
      `  - { resource: /limited, dimension: global, algorithm: fixed-window, limit: ${LIMIT}, window: 52w }`,
      'routes:',
      ...routes,
      'upstreams:',
      `  app: { instances: [{ url: "http://127.0.0.1:${upstreamPort}" }] }`,
      '',
    ].join('\n'),
  )
  renameSync(`${file}.new`, file)
  return file
}

/** A service with a gateway, which ends with the test. */
export interface GatewayProcess {
  readonly child: ChildProcess
  /** Of the gateway. */
  readonly port: number
  /** Of the admin API and health. */
  readonly origin: string
  /** Resolves with its exit code, first. */
  readonly ended: Promise<unknown[]>
  /** Keeps connections of its clients. */
  readonly agent: Agent
}

let started = 0

/** `more`: environment variables. */
export async function startGateway(
  { folder }: Site,
  config: string,
  more: Readonly<Record<string, string>> = {},
): Promise<GatewayProcess> {
  const env = {
    ...{ PORT: '0', SLUICE_GATEWAY_PORT: '0', SLUICE_CONFIG: config, SLUICE_LOG_LEVEL: 'error' },
    SLUICE_DATA_DIR: join(folder, `node-${++started}`),
    ...more,
  }
  const main = join(import.meta.dirname, '../main.ts')
  const child = spawn(process.execPath, ['--conditions=source', main], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
  onTestFinished(async () => {
    agent.destroy()
    child.kill('SIGKILL')
    await ended
  })
  const [port, origin] = await new Promise<[number, string]>((resolve, reject) => {
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      const [, gatewayPort] = /gateway +http:\/\/127\.0\.0\.1:(\d+) /.exec(output) ?? []
      const [, found] = /(http:\/\/127\.0\.0\.1:\d+)\/readyz/.exec(output) ?? []
      if (gatewayPort !== undefined && found !== undefined) resolve([Number(gatewayPort), found])
    })
    child.once('close', () => reject(new Error(`It ended: ${output}`)))
  })
  return { child, port, origin, ended, agent }
}

/** Status and `Connection` of an answer. */
export async function ask(
  { port, agent }: Pick<GatewayProcess, 'port' | 'agent'>,
  path: string,
): Promise<[number, string | undefined]> {
  const request = httpRequest({ host: '127.0.0.1', port, path, agent })
  request.end()
  const [response] = await once(request, 'response')
  response.resume()
  await once(response, 'end')
  return [response.statusCode, response.headers.connection]
}
