// The package as users get it: packed, installed outside of the repository, imported, compiled, bundled, and every
// program of the documents for users run on it.
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { freePort, type RedisServer, startRedis, startRedisCluster } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Bundle } from './bundle.ts'
import { compileProject, documentExamples, runExample, writeExamples } from './document-examples.ts'
import { call, ExampleProcess } from './examples-process.ts'
import { scanImports } from './import-scanner.ts'
import { makePackageProjects, type PackageProjects, testFolder } from './package-project.test.support.ts'
import { statedSizes } from './package-sizes.ts'
import type { Manifest } from './workspace.ts'
import { readJson, repositoryRoot } from './workspace.ts'

const run = promisify(execFile)

const facade = readJson<Manifest>(join(repositoryRoot, 'packages/sluice/package.json'))

/** `sluice`, `sluice/redis`, ... */
const entries = Object.keys(facade.exports ?? {}).map((subpath) => `sluice${subpath.slice(1)}`)

/** Entries that need a package of the user's beside them even to be imported. */
const NEED_A_PEER = ['sluice/nest', 'sluice/testing']

/** Entries that run in browsers and on the edge, where there is no Node. */
const RUN_ANYWHERE = [
  ...['sluice', 'sluice/limiter', 'sluice/policy', 'sluice/store', 'sluice/runtime'],
  ...['sluice/client', 'sluice/fetch', 'sluice/hono', 'sluice/middleware'],
]

/** A first compilation on a busy machine takes longer than a hook may otherwise. */
const LONGEST_INSTALL_MS = 300_000

/** Bundles of every entry are printed in one go. */
const MOST_PRINTED_BYTES = 64_000_000

let projects: PackageProjects
let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.close())

beforeAll(() => {
  projects = makePackageProjects()
  return projects.remove
}, LONGEST_INSTALL_MS)

/** How a program ends, and what it prints, without the colours that some programs use when `CI` is set. */
async function ended(args: readonly string[]): Promise<{ readonly code: number; readonly text: string }> {
  const plain = (printed: { readonly stdout: string; readonly stderr: string }): string =>
    stripVTControlCharacters(`${printed.stdout}${printed.stderr}`)
  return await run(process.execPath, args, { maxBuffer: MOST_PRINTED_BYTES }).then(
    (printed) => ({ code: 0, text: plain(printed) }),
    (failed: { code: number; stdout: string; stderr: string }) => ({ code: failed.code, text: plain(failed) }),
  )
}

describe('the installed package', () => {
  it('brings nothing along that it does not depend on', () => {
    const installed = readdirSync(join(projects.bare, 'node_modules')).filter((name) => !name.startsWith('.'))
    expect(installed).toEqual(['sluice', ...Object.keys(projects.manifest.dependencies ?? {})].toSorted())
  })

  it('names no package of the workspace', () => {
    const code = projects.pack.files.filter((path) => /\.(?:js|d\.ts)$/.test(path))
    const named = code.flatMap((path) =>
      scanImports(readFileSync(join(projects.bare, 'node_modules/sluice', path), 'utf8'))
        .filter(({ specifier }) => specifier === undefined || specifier.startsWith('@sluice/'))
        .map(({ specifier, line }) => `${path}:${line} ${specifier}`),
    )
    expect(code.length).toBeGreaterThan(entries.length)
    expect(named).toEqual([])
  })

  it('holds no tests and no sources', () => {
    expect(projects.pack.files.filter((path) => /\.test|\.suite\.test|(?<!\.d)\.ts$|\.map$/.test(path))).toEqual([])
  })

  it.each([
    ['imported', (entry: string) => `import('${entry}')`],
    ['required', (entry: string) => `Promise.resolve(require('${entry}'))`],
  ])('can be %s, by each of its entries', async (_, load) => {
    const namesIn = async (project: string, names: readonly string[]): Promise<object> => {
      const program = `Promise.all([${names.map(load).join()}])
        .then((all) => console.log(JSON.stringify(all.map((entry) => Object.keys(entry).sort()))))`
      const flags = ['--disable-warning=ExperimentalWarning', '--eval', program]
      const { stdout, stderr } = await run(process.execPath, flags, { cwd: project })
      expect(stderr).toBe('')
      const lists = JSON.parse(stdout) as string[][]
      return Object.fromEntries(names.map((name, index) => [name, lists[index]]))
    }
    const listed = await Promise.all(
      entries.map(async (entry) => [
        entry,
        Object.keys(await import(join(repositoryRoot, sourceOf(entry)))).toSorted(),
      ]),
    )
    const found = {
      ...(await namesIn(
        projects.bare,
        entries.filter((entry) => !NEED_A_PEER.includes(entry)),
      )),
      ...(await namesIn(projects.full, NEED_A_PEER)),
    }
    expect(found).toEqual(Object.fromEntries(listed))
  })

  it('is a few files, because finding and opening each is most of the time that importing takes', () => {
    const modules = projects.pack.files.filter((path) => /^dist\/(?!programs\/).*\.js$/.test(path))
    expect(modules.length).toBeLessThan(4 * entries.length)
  })

  it('starts threads, whose files it finds', async () => {
    const race = `import { sharedMemoryStore } from 'sluice'
      import { runThreadRace } from 'sluice/testing'
      const store = sharedMemoryStore({ maxKeys: 100, maxThreads: 4 })
      const calls = [{ requests: [{ rule: 'race', key: 'a' }], times: 60 }]
      const threads = [calls, calls]
      const rules = { race: { algorithm: 'fixed-window', limit: 100, window: '1h' } }
      const approved = await runThreadRace({ handle: store.handle(), rules, threads, instantMicros: 1e15 })
      console.log(approved.flat().reduce((sum, one) => sum + one))`
    const program = join(testFolder(projects.full), 'race.mjs')
    writeFileSync(program, race)
    expect(await ended(['--disable-warning=ExperimentalWarning', program])).toEqual({ code: 0, text: '100\n' })
  })

  it('counts on a Redis with nothing else installed', async () => {
    const counts = `import { createLimiter } from 'sluice'
      import { redisStore } from 'sluice/redis'
      const store = redisStore('${redis.url}', { deadlineMs: 20_000, failureMode: 'closed' })
      const limiter = createLimiter({ limit: 2, window: '1h', store })
      for (let call = 0; call < 3; call++) console.log((await limiter.check('alone')).allowed)
      await store.close()`
    const program = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', counts]
    const { stdout } = await run(process.execPath, program, { cwd: projects.bare })
    expect(stdout).toBe('true\ntrue\nfalse\n')
  })

  it.each(['esbuild', 'rolldown', 'rollup', 'webpack'])(
    'can be bundled by %s without the optional package "redis"',
    async (name) => {
      const folder = testFolder(projects.bare)
      const [program, bundled] = [join(folder, 'program.mjs'), join(folder, 'bundle.mjs')]
      const counts = `import { createLimiter } from 'sluice'
      import { redisStore } from 'sluice/redis'
      const store = redisStore('${redis.url}', { prefix: '${name}', deadlineMs: 20_000, failureMode: 'closed' })
      const limiter = createLimiter({ limit: 1, window: '1h', store })
      for (let call = 0; call < 2; call++) console.log((await limiter.check('alone')).allowed)
      await store.close()
      const cluster = redisStore('${redis.url}', { cluster: true })
      const clustered = createLimiter({ limit: 1, window: '1h', store: cluster })
      await clustered.check('key').catch(({ code }) => console.log(code))
      await cluster.close()`
      writeFileSync(program, counts)
      const bundler = join(repositoryRoot, 'tools/bundle-for-node.ts')
      const made = await ended([join(repositoryRoot, 'tools/run.mjs'), bundler, name, program, bundled])
      expect(made).toEqual({ code: 0, text: '' })
      // Bundled, so that nothing is looked for any more but the optional package.
      expect(await ended([bundled])).toEqual({ code: 0, text: 'true\nfalse\nSLUICE_INVALID_OPTION\n' })
    },
  )

  it('counts on a cluster when esbuild makes the package "redis" a file of its own', { timeout: 120_000 }, async () => {
    await using cluster = await startRedisCluster()
    const folder = testFolder(projects.full)
    const [program, bundled] = [join(folder, 'program.mjs'), join(folder, 'bundle.mjs')]
    const counts = `import { createLimiter } from 'sluice'
      import { redisStore } from 'sluice/redis'
      const options = { cluster: true, deadlineMs: 20_000, failureMode: 'closed' }
      const store = redisStore(${JSON.stringify(cluster.urls)}, options)
      const limiter = createLimiter({ limit: 1, window: '1h', store })
      for (let call = 0; call < 2; call++) console.log((await limiter.check('alone')).allowed)
      await store.close()`
    writeFileSync(program, counts)
    const bundler = join(repositoryRoot, 'tools/bundle-for-node.ts')
    const made = await ended([
      join(repositoryRoot, 'tools/run.mjs'),
      bundler,
      'esbuild with splitting',
      program,
      bundled,
    ])
    expect(made).toEqual({ code: 0, text: '' })
    expect(readdirSync(folder).length).toBeGreaterThan(2)
    expect(await ended([bundled])).toEqual({ code: 0, text: 'true\nfalse\n' })
  })

  it.each(['esbuild', 'rolldown', 'rollup', 'webpack'])(
    'has entries that %s resolves without optional peers',
    async (name) => {
      const folder = testFolder(projects.bare)
      const [program, bundled] = [join(folder, 'program.mjs'), join(folder, 'bundle.mjs')]
      const alone = entries.filter((entry) => !NEED_A_PEER.includes(entry))
      const lines = alone.map((entry, index) => `import * as entry${index} from '${entry}'`)
      const names = alone.map((_, index) => `entry${index}`).join()
      const used = `console.log([${names}].every((all) => Object.keys(all).length))`
      writeFileSync(program, [...lines, used].join('\n'))
      const bundler = join(repositoryRoot, 'tools/bundle-for-node.ts')
      const made = await ended([join(repositoryRoot, 'tools/run.mjs'), bundler, name, program, bundled])
      expect(made).toEqual({ code: 0, text: '' })
      expect(await ended([bundled])).toEqual({ code: 0, text: 'true\n' })
    },
  )

  it('has the pages that its warnings name', async () => {
    const warned = `import { rateLimit } from 'sluice/fetch'
      rateLimit({ limit: 5, window: 60, warn: ({ docs }) => console.log(docs) })`
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', warned], { cwd: projects.bare })
    const [page, heading] = stdout.trim().split('#')
    expect(heading).toBe('sluice_use_short_window')
    expect(readFileSync(join(projects.bare, page!), 'utf8')).toContain(`### \`${heading!.toUpperCase()}\``)
  })

  it('offers the schema of its files', async () => {
    const print = "import schema from 'sluice/sluice.schema.json' with { type: 'json' }; console.log(schema.type)"
    expect((await run(process.execPath, ['--eval', print], { cwd: projects.bare })).stdout).toBe('object\n')
  })
})

function sourceOf(entry: string): string {
  const target = facade.exports?.[`.${entry.slice('sluice'.length)}`]
  return join('packages/sluice', (target as Readonly<Record<string, string>>)['source']!)
}

describe('to the compiler, the installed package', () => {
  /** Compiles a file that uses every type of these entries, the declarations of the package included. */
  async function complaintsOf(
    project: string,
    names: readonly string[],
    compilerOptions: object,
    file = 'consumer.ts',
  ): Promise<string> {
    const folder = testFolder(project)
    const lines = names.map((name, index) => `import * as entry${index} from '${name}'`)
    const used = `export const used: object[] = [${names.map((_, index) => `entry${index}`).join(', ')}]`
    writeFileSync(join(folder, file), [...lines, used, ''].join('\n'))
    const strict = { strict: true, noEmit: true, target: 'es2024', types: [], ...compilerOptions }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: strict, files: [file] }))
    return await compileProject(folder)
  }

  it.each([
    ['nodenext', { module: 'nodenext', moduleResolution: 'nodenext' }],
    ['node16', { module: 'node16', moduleResolution: 'node16' }],
    ['bundler', { module: 'esnext', moduleResolution: 'bundler' }],
  ])('has types for every entry, found the %s way', async (_, options) => {
    const withNode = { ...options, types: ['node'], skipLibCheck: true }
    expect(await complaintsOf(projects.full, entries, withNode)).toBe('')
  })

  it.each(['node16', 'nodenext', 'commonjs'])('has types in a CommonJS file, with module %s', async (module) => {
    const names = entries.filter((entry) => entry !== 'sluice/testing')
    const options = { module, types: ['node'], skipLibCheck: true }
    expect(await complaintsOf(projects.full, names, options, 'consumer.cts')).toBe('')
    // The declarations of the package itself, without those of peers, are checked too.
    const own = { module, lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable'] }
    const alone = RUN_ANYWHERE.filter((entry) => entry !== 'sluice/hono')
    expect(await complaintsOf(projects.bare, alone, own, 'consumer.cts')).toBe('')
  })

  it('has types that need neither Node nor a peer, where the code does not', async () => {
    const names = [...RUN_ANYWHERE.filter((entry) => entry !== 'sluice/hono')]
    const options = { module: 'nodenext', lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable'] }
    expect(await complaintsOf(projects.bare, names, { ...options, exactOptionalPropertyTypes: true })).toBe('')
  })

  it('has the descriptions of the HTTP API on the types of its bodies', () => {
    const path = 'node_modules/sluice/dist/packages/contract/checks/check-request.d.ts'
    const types = readFileSync(join(projects.bare, path), 'utf8')
    expect(types).toMatch(/^ {4}\/\*\* Tokens to take\. .* \*\/\n {4}readonly tokens\?: number;$/m)
    expect(types).toMatch(/^\/\*\* Who calls what\. .* \*\/\nexport interface CheckRequest /m)
  })

  it('has types that can be named in the declarations of a program that exports what it returns', async () => {
    const folder = testFolder(projects.bare)
    const program = `import * as sluice from 'sluice'
      import { PolicyEngine } from 'sluice/policy'
      import { denyCacheStore, fallbackStore, leasedStore, type Store } from 'sluice/store'
      export const limiter = sluice.createLimiter({ limit: 1, window: '1s' })
      export const limits = sluice.createLimiter({ rules: { read: { limit: 1, window: '1s' } } })
      export const store = sluice.memoryStore()
      export const shared = sluice.sharedMemoryStore()
      export const handle = shared.handle()
      export const attached = sluice.attachSharedMemoryStore(handle)
      export const decision = limiter.check('key')
      export const reservation = limiter.reserve('key')
      export const settlement = limiter.adjust('key', 1)
      export const rules = [
        sluice.gcra({ limit: 1, window: '1s' }),
        sluice.hybrid({ limit: 1, window: '1s', burst: { capacity: 1, refillPerSecond: 1 } }),
        sluice.concurrency({ limit: 1, lease: '1s' }),
      ] as const
      export const bucket = sluice.tokenBucket({ capacity: 1, refillPerSecond: 1 })
      export const meter = sluice.leakyBucketMeter({ capacity: 1, leakPerSecond: 1 })
      export const queue = sluice.leakyBucketQueue({ capacity: 1, ratePerSecond: 1 })
      export const windows = [sluice.fixedWindow, sluice.slidingWindowCounter, sluice.slidingWindowLog].map((make) =>
        make({ limit: 1, window: '1s' }),
      )
      export const engine = new PolicyEngine({ store })
      export const { entries } = engine
      export const answers = [engine.check({ resource: '/' }), engine.explain({ resource: '/' })] as const
      export const decorate = (remote: Store<'async'>) =>
        [fallbackStore(remote), leasedStore(remote), denyCacheStore(remote)] as const
      `
    writeFileSync(join(folder, 'program.ts'), program)
    const options = { strict: true, declaration: true, emitDeclarationOnly: true, outDir: 'out', rootDir: '.' }
    const target = { module: 'nodenext', target: 'es2024', lib: ['es2024', 'esnext.disposable', 'dom'], types: [] }
    const project = { compilerOptions: { ...options, ...target }, files: ['program.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project))
    expect(await compileProject(folder)).toBe('')
  })

  it('resolves without findings of are-the-types-wrong', async () => {
    const program = join(repositoryRoot, 'node_modules/@arethetypeswrong/cli/dist/index.js')
    // `sluice/testing` is an ES module only, as vitest is.
    const flags = ['--format', 'ascii', '--no-color', '--exclude-entrypoints', 'testing']
    expect(await ended([program, projects.pack.path, ...flags])).toEqual({
      code: 0,
      text: expect.stringContaining('No problems found'),
    })
  })

  it('is linted by publint without findings', async () => {
    const program = join(repositoryRoot, 'node_modules/publint/src/cli.js')
    const linted = await ended([program, projects.pack.path, '--strict'])
    expect(linted).toEqual({ code: 0, text: expect.stringMatching(/\nAll good!\s*$/) })
  })
})

async function bundlesOf(programs: readonly string[]): Promise<Bundle[]> {
  const program = join(repositoryRoot, 'tools/bundle-programs.ts')
  const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
  const { code, text } = await ended([...flags, program, projects.full, ...programs])
  if (code !== 0) throw new Error(text)
  return JSON.parse(text) as Bundle[]
}

describe('to a bundler, the installed package', () => {
  it('needs no Node where it is said to run anywhere', async () => {
    const bundles = await bundlesOf(RUN_ANYWHERE.map((entry) => `export * from '${entry}'`))
    const found = bundles.map(({ modules, imports }, index) => ({
      entry: RUN_ANYWHERE[index],
      isEmpty: modules.length === 0,
      needs: imports.filter((name) => name.startsWith('node:')),
    }))
    expect(found).toEqual(RUN_ANYWHERE.map((entry) => ({ entry, isEmpty: false, needs: [] })))
  })

  it('gives a limiter without anything that it does not use', async () => {
    const [limiter] = await bundlesOf([
      "import { createLimiter } from 'sluice'; console.log(createLimiter({ limit: 1, window: '1s' }).tryAcquire('a'))",
    ])
    expect(limiter!.imports).toEqual([])
    // Words that stand in the code of a part, however it is minified.
    expect(limiter!.code).toContain('SLUICE_INVALID_RULE')
    const parts = {
      threads: 'SharedArrayBuffer',
      policy: 'rule set',
      fallback: 'fell-back',
      headers: 'X-RateLimit-Limit',
    }
    const found = Object.entries(parts).filter(([, word]) => limiter!.code.includes(word))
    expect(found).toEqual([])
    const [everything] = await bundlesOf([
      ['sluice', 'sluice/policy', 'sluice/store', 'sluice/middleware']
        .map((name) => `export * from '${name}'`)
        .join(';'),
    ])
    expect(Object.values(parts).filter((word) => !everything!.code.includes(word))).toEqual([])
  })

  it('is as small as the reference says', async () => {
    const stated = statedSizes(readFileSync(join(repositoryRoot, 'docs/reference/package.md'), 'utf8'))
    expect(stated.map(({ entry }) => entry)).toEqual(entries.filter((entry) => !entry.startsWith('sluice/testing')))
    const bundles = await bundlesOf(stated.map(({ program }) => program))
    const wrong = stated.flatMap(({ entry, kilobytes }, index) => {
      const actual = bundles[index]!.gzipBytes / 1000
      return actual <= kilobytes && actual > kilobytes * 0.7
        ? []
        : `${entry} is ${actual} kB, stated as ${kilobytes} kB`
    })
    expect(wrong).toEqual([])
  })
})

describe('on Cloudflare Workers, the installed package', () => {
  // Workers run in workerd. At module scope it allows no random values, no timers and no I/O, and the time stands at
  // 1970.
  const WORKER = `
    import { createLimiter, memoryStore } from 'sluice'
    import { PolicyEngine } from 'sluice/policy'
    import { rateLimit } from 'sluice/fetch'

    const limiter = createLimiter({ limit: 2, window: '1h' })
    const limits = createLimiter({ rules: { read: { limit: 3, window: '1h' } } })
    const ruleSet = { rules: [{ resource: '*', dimension: 'user', limit: 4, window: '1h' }] }
    const engine = new PolicyEngine({ store: memoryStore(), ruleSet })
    const limited = rateLimit({ limit: 2, window: '1h', key: () => 'all' })(() => new Response('hello'))

    export default {
      fetch(request) {
        if (new URL(request.url).pathname === '/limited') return limited(request)
        return Response.json([
          limiter.check('key').remaining,
          limits.limiter('read').check('key').remaining,
          engine.check({ resource: '/x', user: 'ann' }).remaining,
        ])
      },
    }`
  const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (
      services = [(name = "main", worker = (
        modules = [(name = "worker.js", esModule = embed "worker.js")],
        compatibilityDate = "2026-10-01",
      ))],
      sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
    );`

  it('makes limiters at module scope, and limits requests', async () => {
    const folder = testFolder(projects.full)
    const [worker] = await bundlesOf([WORKER])
    writeFileSync(join(folder, 'worker.js'), worker!.code)
    writeFileSync(join(folder, 'config.capnp'), CONFIG)
    const { default: command } = createRequire(import.meta.url)('workerd') as { readonly default: string }
    const workerd = new ExampleProcess({ command, args: ['serve', 'config.capnp', '--control-fd=1'], cwd: folder })
    try {
      const port = await workerd.printed(/"event":"listen","socket":"http","port":(\d+)/)
      const answer = async (path: string): Promise<string> => {
        const { status, body } = await call(`http://127.0.0.1:${port}${path}`)
        return `${status} ${body}`
      }
      expect([await answer('/'), await answer('/')]).toEqual(['200 OK [1,2,3]', '200 OK [0,1,2]'])
      expect([await answer('/limited'), await answer('/limited')]).toEqual(['200 OK hello', '200 OK hello'])
      expect(await answer('/limited')).toMatch(/^429 /)
    } finally {
      await workerd.stop('SIGKILL')
    }
  })
})

describe('the programs of the documents, on the installed package,', () => {
  const FOR_USERS = /^(?:README\.md|packages\/sluice\/README\.md|docs\/(?:guides|algorithms)\/.+)$/
  const examples = documentExamples().filter(({ document }) => FOR_USERS.test(document))
  const programs = examples.filter(({ file }) => file === undefined)
  let folder: string

  beforeAll(async () => {
    folder = projects.full
    writeExamples(folder, examples, { redisUrl: redis.url, port: await freePort() })
  })

  it('are there', () => {
    const documents = new Set(programs.map(({ document }) => document))
    expect([...documents]).toEqual(expect.arrayContaining(['README.md', 'docs/guides/get-started/library.md']))
  })

  it.each([
    ['nodenext', { module: 'nodenext' }],
    ['bundler', { module: 'esnext', moduleResolution: 'bundler' }],
  ])('compile, with modules found the %s way', async (way, options) => {
    const common = { strict: true, noEmit: true, target: 'es2024', types: ['node'], skipLibCheck: true }
    const project = { compilerOptions: { ...common, ...options }, files: examples.map(({ path }) => path) }
    writeFileSync(join(folder, `tsconfig.${way}.json`), JSON.stringify(project))
    expect(await compileProject(folder, `tsconfig.${way}.json`)).toBe('')
  })

  it.each(programs.map((example) => [example.place, example] as const))(
    '%s prints what it says',
    // A check that Redis does not answer within 50 ms is let through without it, which a machine busy with other tests
    // can bring about. What a program prints wrongly it prints so every time.
    { retry: 2 },
    async (_, example) => {
      // Programs of several documents may count the same key.
      await redis.command('FLUSHALL')
      const { lines, complaints } = await runExample(folder, example, ['--disable-warning=ExperimentalWarning'])
      expect(complaints).toBe('')
      expect(lines).toEqual(example.expected)
    },
  )
})
