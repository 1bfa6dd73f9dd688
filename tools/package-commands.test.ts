// The commands of the package as users run them: installed by npm, pnpm and yarn in empty projects, without a build.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { freePort, startPostgres, startRedis } from '@sluice/testing/servers'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ExampleProcess } from './examples-process.ts'
import { makePackageProjects, type PackageProjects, testFolder, workspaceCopy } from './package-project.test.support.ts'
import { repositoryRoot } from './workspace.ts'

const LONGEST_INSTALL_MS = 300_000

let projects: PackageProjects

beforeAll(() => {
  projects = makePackageProjects()
  return projects.remove
}, LONGEST_INSTALL_MS)

interface Run {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

function run(command: string, args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): Run {
  const path = `${dirname(process.execPath)}:${process.env['PATH']}`
  const options = { cwd, encoding: 'utf8', env: { ...process.env, CI: '', PATH: path, ...env } } as const
  const { status, stdout, stderr } = spawnSync(command, args, options)
  return { code: status, out: stdout, err: stderr }
}

/** The command as npm links it. */
const bin = (): string => join(projects.bare, 'node_modules/.bin/sluice')

async function startService(
  args: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<{ readonly service: ExampleProcess; readonly env: Readonly<Record<string, string>> }> {
  const [port, folder] = [await freePort(), testFolder(projects.bare)]
  const service = new ExampleProcess({
    command: bin(),
    args: ['serve', ...args],
    cwd: folder,
    env: {
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      PORT: `${port}`,
      SLUICE_DRAIN_MS: '0',
      ...variables,
    },
  })
  onTestFinished(async () => void (await service.stop('SIGTERM')))
  const key = await service.printed(/(slk_\w+)/)
  await service.printed(/(Try it:)/)
  return { service, env: { SLUICE_URL: `http://127.0.0.1:${port}`, SLUICE_API_KEY: key } }
}

describe('the command of the installed package', () => {
  it('runs every command of the README', { timeout: 120_000 }, async () => {
    const readme = readFileSync(join(projects.bare, 'node_modules/sluice/README.md'), 'utf8')
    const lines = [...readme.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) => block.trim().split('\n'))
    expect(lines.slice(0, 2)).toEqual(['npm install sluice', 'npx sluice serve'])
    const commands = lines.slice(2)
    expect(commands.filter((line) => !line.startsWith('npx sluice '))).toEqual([])
    expect(commands.length).toBeGreaterThanOrEqual(6)
    const { env } = await startService()
    const failed = commands.flatMap((line) => {
      const { code, out, err } = run('sh', ['-c', line.replace('npx sluice', bin())], projects.bare, env)
      return code === 0 && out !== '' && err === '' ? [] : [`${line} ended with ${code}: ${out}${err}`]
    })
    expect(failed).toEqual([])
  })

  it('prints what `npm start` prints, and serves from several threads', async () => {
    const { service, env } = await startService(['--threads', '2', '--gateway-port', '0'])
    const gateway = await service.printed(/gateway +(http:\/\/127\.0\.0\.1:\d+)/)
    const through = await fetch(`${gateway}/x`, { headers: { 'X-API-Key': 'demo' } })
    expect(await through.json()).toMatchObject({ user: 'demo' })
    const page = await fetch(`${env['SLUICE_URL']}/`)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const [script = ''] = /assets\/[\w-]+\.js/.exec(await page.text()) ?? []
    expect((await fetch(`${env['SLUICE_URL']}/${script}`)).status).toBe(200)
    const check = run(bin(), ['check', '/api/v1/data', '--user', 'ada', '--tokens', '60', '--json'], projects.bare, env)
    expect(JSON.parse(check.out)).toMatchObject({ allowed: true })
    expect(run(bin(), ['check', '/api/v1/data', '--user', 'ada', '--tokens', '60'], projects.bare, env).code).toBe(3)
    const document = (await (await fetch(`${env['SLUICE_URL']}/openapi.json`)).json()) as object
    expect(document).toEqual(JSON.parse(readFileSync(join(projects.bare, 'node_modules/sluice/openapi.json'), 'utf8')))
    const { code, output, complaints } = await service.stop('SIGTERM')
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' })
    for (const line of ['Admin API key', 'Sluice is running.', 'shared by 2 threads', 'Try it:', 'Shutting down']) {
      expect(output).toContain(line)
    }
  })

  it('counts on Redis, keeps rules in PostgreSQL and sends traces, with nothing else installed', async () => {
    await using redis = await startRedis()
    await using postgres = await startPostgres()
    const traces = createHttpServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
    await once(traces, 'listening')
    onTestFinished(() => void traces.close())
    const traced = once(traces, 'request')
    const urls = ['--redis-url', redis.url, '--database-url', postgres.url]
    const { port } = traces.address() as { readonly port: number }
    const { service, env } = await startService([...urls, '--store-deadline-ms', '5000'], {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    })
    const check = ['check', '/api/v1/data', '--user', 'ada', '--tokens', '60']
    expect([run(bin(), check, projects.bare, env).code, run(bin(), check, projects.bare, env).code]).toEqual([0, 3])
    expect(await redis.command('DBSIZE')).toBeGreaterThan(0)
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const body = JSON.stringify({ user: 'bob', resource: '/api/v1/data' })
    const headers = { 'Content-Type': 'application/json', traceparent }
    await fetch(`${env['SLUICE_URL']}/internal/ratelimit/check`, { method: 'POST', headers, body })
    await traced
    const { code, output, complaints } = await service.stop('SIGTERM')
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' })
    expect(output).toMatch(/counters +in Redis at redis:[\s\S]*rules +version 1, from postgres/)
  })

  it('says what to do when the port is in use or the data folder cannot be written', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as { readonly port: number }
    const folder = testFolder(projects.bare)
    const busy = run(bin(), ['serve', '--port', `${port}`], folder)
    expect(busy).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/PORT_IN_USE[\s\S]*another port/) })
    const unusable = run(bin(), ['serve'], folder, { SLUICE_DATA_DIR: '/dev/null/data', PORT: '0' })
    expect(unusable).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/DATA_DIR_UNUSABLE[\s\S]*SLUICE_DATA_DIR/),
    })
  })

  it('says which Node it needs to one that is too old, and to others nothing', () => {
    const versioned = (version: string, ...args: readonly string[]): Run => startedAs(version, bin(), ...args)
    const startedAs = (version: string, ...args: readonly string[]): Run => {
      const versions = `{ ...process.versions, node: '${version}' }`
      const program = `Object.defineProperty(process, 'versions', { value: ${versions} })`
      const preload = `data:text/javascript,${encodeURIComponent(program)}`
      return run(process.execPath, ['--import', preload, ...args], projects.bare)
    }
    for (const version of ['20.20.2', '22.18.0', '22.9.0']) {
      const { code, out, err } = versioned(version, 'check', "ada's resource", '--help')
      expect([code, out]).toEqual([1, ''])
      expect(err).toMatch(/^sluice: SLUICE_CLI_NODE_TOO_OLD: .*22\.19\.0 or later.*nodejs\.org.*\n$/)
      // The command that it names is the one that was typed, on another Node, whichever way it was installed.
      const [, typed = ''] = /npx --yes --package=node@24 -- (node .+)\n$/.exec(err) ?? []
      expect(typed.endsWith(` check 'ada'\\''s resource' --help`), typed).toBe(true)
      expect(run('sh', ['-c', typed], projects.bare)).toEqual(run(bin(), ['check', '--help'], projects.bare))
    }
    // What systemd starts says it too.
    const service = join(projects.bare, 'node_modules/sluice/dist/programs/service.js')
    expect(startedAs('18.20.4', service, '--help')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(
        /^sluice: SLUICE_CLI_NODE_TOO_OLD: this is Node 18\.20\.4 at \/.*22\.19\.0 or later.*\n$/,
      ),
    })
    expect(startedAs('22.19.0', service, '--help')).toMatchObject({ code: 0, err: '' })
    for (const version of ['22.19.0', '26.0.0'])
      expect(versioned(version, '--version')).toMatchObject({ code: 0, err: '' })
    expect(projects.manifest.engines).toEqual({ node: '>=22.19.0' })
  })

  it('has the files that the reference lists', () => {
    const reference = readFileSync(join(repositoryRoot, 'docs/reference/package.md'), 'utf8')
    const table = reference.slice(reference.indexOf('## Files'))
    const listed = [...table.matchAll(/^\| `(?:node_modules\/)?(sluice\/[^`]+)` \|/gm)].map(([, path]) => path!)
    expect(listed).toEqual(expect.arrayContaining(['sluice/openapi.json', 'sluice/llms.txt', 'sluice/docs']))
    expect(listed.filter((path) => !existsSync(join(projects.bare, 'node_modules', path)))).toEqual([])
  })

  it('carries the licences of what is bundled, and nothing that is installed beside it', () => {
    const licences = readFileSync(join(projects.bare, 'node_modules/sluice/THIRD-PARTY-LICENSES.md'), 'utf8')
    for (const name of ['pg', '@redis/client', '@opentelemetry/api', 'yaml']) {
      expect(licences).toMatch(new RegExp(`^- ${name} \\d+\\.\\d+\\.\\d+, [\\w.-]+$`, 'm'))
    }
    expect(projects.manifest.dependencies).toEqual({ yaml: expect.any(String) })
  })
})

describe('the library of the installed package', () => {
  it('is smaller to download than the size from which it would be two packages', () => {
    const decision = readFileSync(join(repositoryRoot, 'docs/decisions/2026-11-18-one-package.md'), 'utf8')
    const [, megabytes] = /a download above ([\d.]+) MB/.exec(decision) ?? []
    expect(projects.pack.packedBytes).toBeLessThan(Number(megabytes) * 1_000_000)
  })

  it('loads no file of the service, and its dependency for sluice/config alone', () => {
    // Nest, vitest and yaml are needed to import these.
    const others = ['.json', '/nest', '/testing', '/config']
    const entries = Object.keys(projects.manifest.exports)
      .filter((subpath) => !others.some((end) => subpath.endsWith(end)))
      .map((subpath) => `sluice${subpath.slice(1)}`)
    const program = `import { registerHooks } from 'node:module'
      const files = []
      registerHooks({ load: (url, context, next) => (files.push(url), next(url, context)) })
      const filesOf = async (names) => {
        for (const name of names) await import(name)
        return files.splice(0).filter((url) => url.startsWith('file:'))
      }
      console.log(JSON.stringify([await filesOf(${JSON.stringify(entries)}), await filesOf(['sluice/config'])]))`
    const { out, err } = run(process.execPath, ['--input-type=module', '--eval', program], projects.bare)
    expect(err.replaceAll(/.*(?:ExperimentalWarning|--trace-warnings).*\n/g, '')).toBe('')
    const [library, config] = JSON.parse(out) as [string[], string[]]
    const isLibrary = (url: string): boolean => /\/node_modules\/sluice\/dist\/(?!programs\/|cjs\/)/.test(url)
    expect(library.length).toBeGreaterThanOrEqual(entries.length)
    expect(library.filter((url) => !isLibrary(url))).toEqual([])
    const dependency = config.filter((url) => !isLibrary(url))
    expect(dependency.length).toBeGreaterThan(0)
    expect(dependency.filter((url) => !url.includes('/node_modules/yaml/'))).toEqual([])
  })
})

describe.each([
  ['pnpm', 'pnpm/bin/pnpm.mjs', { 'pnpm-workspace.yaml': (yaml: string) => `overrides:\n  yaml: "file:${yaml}"\n` }],
  ['yarn, which loads packages from zip files,', '@yarnpkg/cli-dist/bin/yarn.js', {}],
] as const)('installed by %s', (name, manager, files) => {
  let folder: string
  const manage = (...args: readonly string[]): Run =>
    run(process.execPath, [join(repositoryRoot, 'node_modules', manager), ...args], folder, {
      YARN_ENABLE_GLOBAL_CACHE: 'false',
      YARN_ENABLE_NETWORK: 'false',
    })

  beforeAll(() => {
    // Outside of the other projects, so that nothing of theirs is found.
    folder = join(dirname(projects.bare), name.replaceAll(/\W+/g, '-'))
    mkdirSync(folder)
    const yaml = workspaceCopy('yaml')
    const manifest = {
      name: 'managed',
      private: true,
      dependencies: { sluice: `file:${projects.pack.path}` },
      resolutions: { yaml: `file:${yaml}` },
    }
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
    writeFileSync(join(folder, 'yarn.lock'), '')
    for (const [path, text] of Object.entries<(yaml: string) => string>(files)) {
      writeFileSync(join(folder, path), text(yaml))
    }
    const installed = manage('install')
    expect(installed, installed.out + installed.err).toMatchObject({ code: 0 })
  }, LONGEST_INSTALL_MS)

  it('runs the command, its programs and their threads', () => {
    expect(manage('exec', 'sluice', '--version').out).toBe(`${projects.manifest.version}\n`)
    expect(manage('exec', 'sluice', 'harness', '--threads', '2', '--max', '10').out).toMatch(/\b10 of 10 exact\n$/)
  })

  it('can be imported and required, with its dependency', () => {
    const program = `const { createLimiter } = require('sluice')
      const { importEnvoyYaml } = require('sluice/config')
      const { domains } = importEnvoyYaml([{ name: 'a.yaml', text: 'domain: a' }])
      import('sluice').then((all) => console.log(domains[0].domain, all.createLimiter === createLimiter))`
    writeFileSync(join(folder, 'program.cjs'), program)
    // The loader of yarn for zip files does not know the condition `module-sync`.
    expect(manage('exec', 'node', 'program.cjs').out).toBe(`a ${!name.includes('zip')}\n`)
  })
})

describe('Jest, in its default mode,', () => {
  it('loads every entry by require', { timeout: 180_000 }, () => {
    const folder = testFolder(projects.full)
    // The current version of Nest is itself an ES module only, which Jest does not load in this mode.
    const entries = Object.entries(projects.manifest.exports).filter(
      ([subpath, target]) => Object.hasOwn(Object(target), 'require') && subpath !== './nest',
    )
    expect(entries.length).toBeGreaterThan(14)
    const program = `
      const entries = ${JSON.stringify(entries.map(([subpath]) => `sluice${subpath.slice(1)}`))}
      test.each(entries)('%s', (entry) => expect(Object.keys(require(entry)).length).toBeGreaterThan(0))
      test('counts, and opens a database', async () => {
        const { createLimiter } = require('sluice')
        const limiter = createLimiter({ limit: 1, window: '1h' })
        expect([limiter.check('a').allowed, limiter.check('a').allowed]).toEqual([true, false])
        const store = await require('sluice/config').openConfigStore('sqlite::memory:')
        await store.close()
      })`
    const { code, err } = runJest(folder, program)
    expect(err).toMatch(new RegExp(`Tests: +${entries.length + 1} passed, ${entries.length + 1} total`))
    expect(code).toBe(0)
  })
  it('runs an app with sluice/nest on Nest 11, the last version that Jest loads in this mode', {
    timeout: 180_000,
  }, () => {
    const folder = testFolder(projects.full)
    const modules = join(folder, 'node_modules')
    // A copy, so that what the package requires is found here.
    cpSync(join(projects.bare, 'node_modules'), modules, { recursive: true, verbatimSymlinks: true })
    mkdirSync(join(modules, '@nestjs'))
    for (const name of ['common', 'core', 'platform-express']) {
      const nest = join(repositoryRoot, 'tools/frameworks/nest-11/node_modules/@nestjs', name)
      symlinkSync(realpathSync(nest), join(modules, '@nestjs', name))
    }
    for (const name of ['rxjs', 'reflect-metadata']) symlinkSync(workspaceCopy(name), join(modules, name))
    const program = `
      require('reflect-metadata')
      const { Controller, Get, Module } = require('@nestjs/common')
      const { NestFactory } = require('@nestjs/core')
      const { RateLimit, RateLimitModule, SkipRateLimit } = require('sluice/nest')

      class Greetings {
        hello() { return 'hello' }
        often() { return 'often' }
        free() { return 'free' }
      }
      const decorate = (name, ...decorators) => {
        const descriptor = Object.getOwnPropertyDescriptor(Greetings.prototype, name)
        for (const decorator of decorators) decorator(Greetings.prototype, name, descriptor)
      }
      decorate('hello', Get('hello'))
      decorate('often', Get('often'), RateLimit({ limit: 2, window: '1h' }))
      decorate('free', Get('free'), SkipRateLimit())
      Controller()(Greetings)
      class App {}
      Module({ imports: [RateLimitModule.forRoot({ limit: 1, window: '1h' })], controllers: [Greetings] })(App)

      test('denies beyond the limits', async () => {
        const app = await NestFactory.create(App, { logger: false })
        await app.listen(0, '127.0.0.1')
        const statuses = []
        for (const path of ['hello', 'hello', 'often', 'often', 'often', 'free', 'free']) {
          const response = await fetch(await app.getUrl() + '/' + path)
          await response.text()
          statuses.push(response.status)
        }
        await app.close()
        expect(statuses).toEqual([200, 429, 200, 200, 429, 200, 200])
      })`
    const { code, err } = runJest(folder, program)
    expect(err).toMatch(/Tests: +1 passed, 1 total/)
    expect(code).toBe(0)
  })
})

/** Runs this test file by Jest without settings. */
function runJest(folder: string, program: string): Run {
  writeFileSync(join(folder, 'program.test.js'), program)
  writeFileSync(join(folder, 'package.json'), '{}')
  const jest = join(repositoryRoot, 'node_modules/jest/bin/jest.js')
  return run(process.execPath, [jest, '--rootDir', folder, '--no-cache'], folder)
}
