// Every folder below examples/ is started as its README says, on the sources of this repository, and called until it is
// limited: exactly as many calls pass as it says, and the answers are those that its README shows.
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort, startPostgres, startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Example, HttpAnswer } from './examples.ts'
import {
  differences,
  importedPackages,
  readExamples,
  readmeAnswers,
  readmeCall,
  readmeOutput,
  scriptFile,
} from './examples.ts'
import { call, ExampleProcess, type ProcessEnd } from './examples-process.ts'
import { findProgram } from './requirements.ts'
import type { Manifest } from './workspace.ts'
import { readJson, repositoryRoot } from './workspace.ts'

const FLAGS = ['--conditions=source', '--disable-warning=ExperimentalWarning']

/** An example prints its address when it is up, and nothing else. */
const EXAMPLE_URL = /^(http:\/\/127\.0\.0\.1:\d+)\/?$/m

/** The service prints a page of addresses. */
const SERVICE_URL = /^ +health +(http:\S+)\/livez[\s\S]+^Try it:$/m
const SERVICE_KEY = /^ +(slk_\w+)$/m

/** Packages that an example needs without importing them: clients and platforms that others load. */
const LOADED_BY_OTHERS = ['@nestjs/platform-express', 'redis', 'rxjs']

const STARTED_AT_A_TIME = 3

/** A first start on a busy machine takes longer than a hook may otherwise. */
const LONGEST_START_MS = 180_000

/** An example that runs: where it is called, in turn, and its processes in the order of their start. */
interface Running {
  readonly urls: readonly string[]
  readonly processes: readonly ExampleProcess[]
}

/** How an example is brought up. */
interface Scene {
  /** Calls that pass. */
  readonly limit: number
  readonly start: (example: Example) => Promise<Running>
}

const processes: ExampleProcess[] = []
const folders: string[] = []
const servers: { close(): Promise<void> }[] = []

function launch(command: string, args: readonly string[], cwd: string, env: Record<string, string> = {}) {
  const started = new ExampleProcess({ command, args, cwd, env })
  processes.push(started)
  return started
}

/** Runs a script of an example. */
function runScript(example: Example, script: string, env: Record<string, string> = {}): ExampleProcess {
  return launch(process.execPath, [...FLAGS, scriptFile(example, script)!], example.folder, { PORT: '0', ...env })
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-example-'))
  folders.push(folder)
  return folder
}

/** The service, as `npm start` in the repository starts it. */
function runService(flags: readonly string[], env: Record<string, string> = {}): ExampleProcess {
  const main = join(repositoryRoot, 'apps/service/src/main.ts')
  const own = ['--port', '0', '--data-dir', temporaryFolder(), '--drain-ms', '0']
  return launch(process.execPath, [...FLAGS, main, ...own, ...flags], repositoryRoot, env)
}

async function startAlone(example: Example): Promise<Running> {
  const app = runScript(example, 'start')
  return { urls: [await app.printed(EXAMPLE_URL)], processes: [app] }
}

const ALONE: Scene = { limit: 5, start: startAlone }

async function startMachines(example: Example): Promise<Running> {
  const redis = await startRedis()
  servers.push(redis)
  const apps = [1, 2].map(() => runScript(example, 'start', { REDIS_URL: redis.url }))
  return { urls: await Promise.all(apps.map((app) => app.printed(EXAMPLE_URL))), processes: apps }
}

async function startWithService(example: Example): Promise<Running> {
  const service = runService(['--config', join(example.folder, 'sluice.yaml')])
  const app = runScript(example, 'start', { SLUICE_URL: await service.printed(SERVICE_URL) })
  return { urls: [await app.printed(EXAMPLE_URL)], processes: [service, app] }
}

async function startWithNodes(example: Example): Promise<Running> {
  const [redis, postgres] = await Promise.all([startRedis(), startPostgres()])
  servers.push(redis, postgres)
  // A machine that runs other tests at the same time may need more than 50 ms to answer.
  const shared = { REDIS_URL: redis.url, DATABASE_URL: postgres.url, SLUICE_STORE_DEADLINE_MS: '5000' }
  const first = runService([], shared)
  const url = await first.printed(SERVICE_URL)
  const rules = runScript(example, 'rules', { SLUICE_URL: url, SLUICE_API_KEY: await first.printed(SERVICE_KEY) })
  expect(await rules.end()).toMatchObject({ code: 0, output: 'the limits of / are in force, in version 2\n' })
  const second = runService([], shared)
  const urls = [url, await second.printed(SERVICE_URL)]
  const app = runScript(example, 'start', { SLUICE_URLS: urls.join() })
  return { urls: [await app.printed(EXAMPLE_URL)], processes: [first, second, app] }
}

async function startBehindNginx(example: Example): Promise<Running> {
  const program = findProgram('nginx', [process.env['PATH'], '/usr/sbin'].join(delimiter))
  if (program === undefined)
    throw new Error('nginx was not found. On Debian or Ubuntu: sudo apt-get install --yes nginx')
  const app = runScript(example, 'start')
  const [url, port] = await Promise.all([app.printed(EXAMPLE_URL), freePort()])
  const folder = temporaryFolder()
  const configuration = readFileSync(join(example.folder, 'nginx.conf'), 'utf8')
    .replace('127.0.0.1:3000', new URL(url).host)
    .replace('127.0.0.1:8080', `127.0.0.1:${port}`)
  writeFileSync(join(folder, 'nginx.conf'), configuration)
  const nginx = launch(program, ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr', '-g', 'daemon off;'], folder)
  await listening(nginx, port)
  return { urls: [`http://127.0.0.1:${port}`], processes: [app, nginx] }
}

async function startForwardAuth(example: Example): Promise<Running> {
  const folder = temporaryFolder()
  const service = runService(['--config', join(example.folder, 'sluice.yaml')])
  const app = runScript(example, 'start')
  const [appUrl, serviceUrl] = await Promise.all([app.printed(EXAMPLE_URL), service.printed(SERVICE_URL)])
  const port = await freePort()
  const configuration = readFileSync(join(example.folder, 'nginx.conf'), 'utf8')
    .replace('127.0.0.1:3000', new URL(appUrl).host)
    .replace('127.0.0.1:8080', new URL(serviceUrl).host)
    .replace('127.0.0.1:8000', `127.0.0.1:${port}`)
  writeFileSync(join(folder, 'nginx.conf'), configuration)
  const args = ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr', '-g', 'daemon off;']
  const nginx = launch(findProgram('nginx', [process.env['PATH'], '/usr/sbin'].join(delimiter))!, args, folder)
  await listening(nginx, port)
  return { urls: [`http://127.0.0.1:${port}`], processes: [service, app, nginx] }
}

async function startBehindGateway(example: Example): Promise<Running> {
  const app = runScript(example, 'start')
  const file = join(temporaryFolder(), 'sluice.yaml')
  const configuration = readFileSync(join(example.folder, 'sluice.yaml'), 'utf8')
  writeFileSync(file, configuration.replace('127.0.0.1:3000', new URL(await app.printed(EXAMPLE_URL)).host))
  const gateway = runService(['--config', file, '--gateway-port', '0'])
  const url = await gateway.printed(/^ +gateway +(http:\S+) \(routes of \S+\)$[\s\S]+^Try it:$/m)
  return { urls: [url], processes: [app, gateway] }
}

/** Connects until the program listens there. nginx says nothing when it is up, and a request would be counted. */
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

const SCENES: Readonly<Record<string, Scene>> = {
  'behind-nginx': { limit: 5, start: startBehindNginx },
  express: ALONE,
  'express-rate-limit': ALONE,
  fastify: ALONE,
  fetch: ALONE,
  'forward-auth': { limit: 5, start: startForwardAuth },
  gateway: { limit: 5, start: startBehindGateway },
  hono: ALONE,
  koa: ALONE,
  machines: { limit: 5, start: startMachines },
  nest: ALONE,
  'one-process': ALONE,
  service: { limit: 5, start: startWithService },
  'service-redis-postgres': { limit: 5, start: startWithNodes },
  threads: { limit: 20, start: startAlone },
}

/** Examples that print something and end by themselves. */
const PROGRAMS = ['outbound']

const examples = readExamples(repositoryRoot)
const running = new Map<string, Running>()
const programs = new Map<string, ExampleProcess>()
const served = examples.filter(({ name }) => name in SCENES)

beforeAll(async () => {
  for (const example of examples) {
    if (PROGRAMS.includes(example.name)) programs.set(example.name, runScript(example, 'start'))
  }
  const waiting = [...served]
  const startNext = async (): Promise<void> => {
    for (let example = waiting.shift(); example !== undefined; example = waiting.shift()) {
      running.set(example.name, await SCENES[example.name]!.start(example))
    }
  }
  await Promise.all(Array.from({ length: STARTED_AT_A_TIME }, startNext))
}, LONGEST_START_MS)

afterAll(async () => {
  await Promise.all(processes.map((started) => started.stop('SIGKILL')))
  await Promise.all(servers.map((server) => server.close()))
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

describe('the examples', () => {
  it('are all tried here, and no others', () => {
    expect(examples.map(({ name }) => name)).toEqual([...Object.keys(SCENES), ...PROGRAMS].toSorted())
  })

  it('are all in the list of examples', () => {
    const list = readFileSync(join(repositoryRoot, 'examples/README.md'), 'utf8')
    expect(examples.filter(({ name }) => !list.includes(`[${name}](${name}/README.md)`))).toEqual([])
  })

  it.each(examples.map((example) => [example.name, example] as const))(
    '%s can be a project of its own',
    (_, example) => {
      const { name, dependencies = {}, ...manifest } = example.manifest
      expect(name).toBe(`sluice-example-${example.name}`)
      expect(manifest).toMatchObject({ private: true, type: 'module' })
      expect(scriptFile(example, 'start')).toBeDefined()
      expect(Object.keys(dependencies).filter((dependency) => !LOADED_BY_OTHERS.includes(dependency))).toEqual(
        example.imports,
      )
      for (const [dependency, range] of Object.entries(dependencies)) {
        const { version } = readJson<Manifest>(join(repositoryRoot, 'node_modules', dependency, 'package.json'))
        expect(`${dependency} ^${version}`.split('.')[0]).toBe(`${dependency} ${range}`.split('.')[0])
      }
    },
  )
})

describe.each(served.map((example) => [example.name, example] as const))('%s', (name, example) => {
  const { limit } = SCENES[name]!
  const answers: HttpAnswer[] = []

  it(`lets ${limit} calls pass, and no more`, async () => {
    const { path, headers } = readmeCall(example.readme)!
    const { urls } = running.get(name)!
    for (let made = 0; made < limit + 3; made++) {
      answers.push(await call(`${urls[made % urls.length]}${path}`, { headers }))
    }
    const statuses = answers.map(({ status }) => Number.parseInt(status, 10))
    expect(statuses).toEqual([...Array<number>(limit).fill(200), 429, 429, 429])
  })

  it('answers as its README says', () => {
    const [first, denied, ...others] = readmeAnswers(example.readme)
    expect(others).toEqual([])
    expect(differences(first!, answers[0]!)).toEqual([])
    expect(differences(denied!, answers[limit]!)).toEqual([])
    expect(denied!.headers).toHaveProperty('retry-after')
  })

  if (name === 'threads') {
    // In about one of 500,000 runs a single thread answers all calls.
    it('has more than one thread answer', () => {
      expect(new Set(answers.slice(0, limit).map(({ body }) => body)).size).toBeGreaterThan(1)
    })
  }
})

describe('behind-nginx', () => {
  it('counts clients and not what they say about themselves', async () => {
    const [url] = running.get('behind-nginx')!.urls
    const asked = [
      await call(url!, { headers: { 'X-Forwarded-For': '198.51.100.9' } }),
      await call(url!, { headers: { 'X-Forwarded-For': '198.51.100.9' }, localAddress: '127.0.0.2' }),
      await call(url!, { localAddress: '127.0.0.2' }),
    ]
    expect(asked.map(({ status, headers }) => [status, headers['x-ratelimit-remaining']])).toEqual([
      ['429 Too Many Requests', '0'],
      ['200 OK', '4'],
      ['200 OK', '3'],
    ])
  })
})

describe('gateway', () => {
  it('asks for a key', async () => {
    const [url] = running.get('gateway')!.urls
    expect(await call(url!)).toMatchObject({ status: '401 Unauthorized' })
  })
})

describe('fastify', () => {
  it('does not limit what its README says it does not', async () => {
    const [url] = running.get('fastify')!.urls
    expect(await call(`${url}/health`)).toMatchObject({ status: '200 OK', body: 'well\n' })
  })
})

describe.each(PROGRAMS.map((name) => [name]))('%s', (name) => {
  it('prints what its README says, and ends', async () => {
    const { readme } = examples.find((example) => example.name === name)!
    const shown = readmeOutput(readme)
    expect(shown).toBeDefined()
    expect(await programs.get(name)!.end()).toEqual({ code: 0, output: shown, complaints: '' })
  })
})

describe('SIGTERM', () => {
  it.each(served.map(({ name }) => [name]))('ends %s in order', async (name) => {
    const ends: ProcessEnd[] = []
    for (const started of running.get(name)!.processes.toReversed()) ends.push(await started.stop('SIGTERM'))
    expect(ends.map(({ code, complaints }) => ({ code, complaints }))).toEqual(
      ends.map(() => ({ code: 0, complaints: '' })),
    )
  })
})

describe('differences', () => {
  const shown: HttpAnswer = {
    status: '429 Too Many Requests',
    headers: { 'retry-after': '12', 'content-type': 'application/problem+json' },
    body: '{ "detail": "Try again in 12 seconds.", "retryAfter": 12, "limit": 5 }',
  }
  const came: HttpAnswer = {
    ...shown,
    headers: { 'retry-after': '11', 'content-type': 'application/problem+json; charset=utf-8', date: 'today' },
    body: '{"detail":"Try again in 11 seconds.","retryAfter":11,"limit":5,"remaining":0}',
  }

  it('are none where only the instant is another', () => {
    expect(differences(shown, came)).toEqual([])
  })

  it.each([
    ['status', { ...came, status: '200 OK' }],
    ['retry-after', { ...came, headers: { ...came.headers, 'retry-after': '13' } }],
    ['retry-after', { ...came, headers: { ...came.headers, 'retry-after': '0' } }],
    ['content-type', { ...came, headers: { 'retry-after': '12' } }],
    ['body', { ...came, body: '{"detail":"Try again in 11 seconds.","retryAfter":11,"limit":6}' }],
    ['body', { ...came, body: '{"detail":"Go away.","retryAfter":11,"limit":5}' }],
  ])('are found in the %s', (what, other) => {
    expect(differences(shown, other)).toEqual([expect.stringMatching(new RegExp(`^${what} `))])
  })
})

describe('importedPackages', () => {
  it('are those from npm', () => {
    const source = "import a from 'a'\nimport '@b/c/d'\nimport e from 'e/f'\nimport './g.js'\nimport 'node:h'\n"
    expect(importedPackages(source)).toEqual(['a', '@b/c', 'e'])
  })
})
