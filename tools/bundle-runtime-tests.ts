// `node tools/run.mjs tools/bundle-runtime-tests.ts <bundle> <kind> <test files>...`: puts test files and everything
// they import into one module that runs without vitest. It prints its result as JSON, or as a Worker answers every
// request with it. A process of its own, because a bundler opens more than a test may leave behind.
import { join } from 'node:path'
import { build } from 'esbuild'
import { repositoryRoot } from './workspace.ts'

const folder = join(repositoryRoot, 'tools/runtimes')
const vitest = join(folder, 'portable-vitest.ts')
const print = 'console.log(JSON.stringify(await runPortableTests())); process.exit(0)'

const nativeServer = { '@hono/node-server': join(folder, 'native-server.ts') }

/** How the tests run, and what stands in for the HTTP server that they use. */
const KINDS: Readonly<Record<string, { readonly run: string; readonly alias: Readonly<Record<string, string>> }>> = {
  node: { run: print, alias: {} },
  native: { run: print, alias: nativeServer },
  worker: { run: 'export default { fetch: async () => Response.json(await runPortableTests()) }', alias: nativeServer },
}

const [outfile = '', kind = '', ...tests] = process.argv.slice(2)
const { run, alias } = KINDS[kind]!

await build({
  stdin: {
    contents: [
      ...tests.map((path) => `import ${JSON.stringify(join(repositoryRoot, path))}`),
      `import { runPortableTests } from ${JSON.stringify(vitest)}`,
      run,
    ].join('\n'),
    resolveDir: repositoryRoot,
  },
  alias: { vitest, ...alias },
  banner: {
    // What CommonJS modules in the bundle expect to be there.
    js:
      "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url ?? 'file:///'), " +
      "__dirname = '/';",
  },
  outfile,
  bundle: true,
  // The packages say that importing a module has no effect, which is not so for tests.
  ignoreAnnotations: true,
  platform: 'node',
  format: 'esm',
  target: 'node22',
  conditions: ['source'],
  logLevel: 'error',
})
