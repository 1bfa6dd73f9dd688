import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { GatewayAnswer } from '@sluice/contract'
import { describe, expect, it, onTestFinished } from 'vitest'
import { cliRunner } from '../cli.test.support.ts'
import type { ProgramOptions, RunningProgram } from '../command-line/command.ts'
import { startServiceProcess } from '../service-process.test.support.ts'

const ROUTES = `rules: []
routes:
  - { name: orders, match: { path: "/orders/*", methods: [GET] }, upstream: shop, auth: none, limits: "off" }
upstreams:
  shop: { instances: [{ url: "http://127.0.0.1:9" }] }
`

async function fileWith(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-gateway-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'sluice.yaml')
  await writeFile(file, text)
  return file
}

describe('sluice gateway', () => {
  const run = cliRunner({ env: {} })

  it('says what to write when there are no routes', async () => {
    const without = await run('gateway')
    expect([without.code, without.err]).toEqual([2, expect.stringContaining('No file with routes is given.')])
    expect(without.err).toContain('routes:\n  - { name: all, match: { path: "/*" }, upstream: app }\nupstreams:')
    expect(without.err).toContain('"sluice serve --all-listeners"')
    const file = await fileWith('rules: []\n')
    const empty = await run('gateway', '--config', file)
    expect([empty.code, empty.err]).toEqual([2, expect.stringContaining(`${file} has no "routes".`)])
  })

  it('starts the service with the flags that it gets', async () => {
    const file = await fileWith(ROUTES)
    const started: unknown[] = []
    const nothing = Readable.from([])
    const start = (name: string, { args }: ProgramOptions): RunningProgram => {
      started.push([name, ...args])
      return { pid: 1, output: nothing, events: nothing, errors: nothing, ended: Promise.resolve(0) }
    }
    const { code } = await cliRunner({ env: {}, programs: { start } })('gateway', '--config', file, '--threads', '2')
    expect([code, started]).toEqual([0, [['@sluice/service', '--config', file, '--threads', '2']]])
    // What is wrong with the flags, the service says.
    await cliRunner({ env: {}, programs: { start } })('gateway', '--config', '/nowhere.yaml')
    expect(started).toHaveLength(2)
  })

  it('says that it is switched off', async () => {
    const file = await fileWith(ROUTES)
    const { code, err } = await run('gateway', '--config', file, '--gateway-port', 'off')
    expect([code, err]).toEqual([2, expect.stringContaining('its port is "off"')])
  })
})

describe('sluice gateway status', () => {
  it('shows routes and instances', async () => {
    const service = await startServiceProcess('--config', await fileWith(ROUTES))
    onTestFinished(() => service.close())
    const run = cliRunner({ env: { SLUICE_URL: service.url, SLUICE_API_KEY: service.adminKey } })
    const { code, out } = await run('gateway', 'status')
    expect(code).toBe(0)
    expect(out).toContain('mode     routes\nthreads  1\n')
    expect(out).toMatch(/^orders +\* +\/orders\/\* +GET +none +off +shop$/m)
    expect(out).toMatch(/^shop +http:\/\/127\.0\.0\.1:9 +healthy +closed +0 +- +0 +0$/m)
    const json = JSON.parse((await run('gateway', 'status', '--json')).out) as GatewayAnswer
    expect(json).toMatchObject({ mode: 'routes', routes: [{ name: 'orders', methods: ['GET'], limited: false }] })
  })

  it('says that there is no gateway', async () => {
    const service = await startServiceProcess()
    onTestFinished(() => service.close())
    const run = cliRunner({ env: { SLUICE_URL: service.url, SLUICE_API_KEY: service.adminKey } })
    expect((await run('gateway', 'status')).out).toContain('The gateway is off.')
  })
})
