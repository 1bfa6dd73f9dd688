import { join } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

const MIDDLEWARE_TESTS = 'packages/middleware/src'

const NO_TESTS = ['**/node_modules/**', '**/dist/**']
const TESTS = ['packages/**/*.test.ts', 'apps/**/*.test.ts', 'bench/**/*.test.ts', 'tools/**/*.test.ts']

/**
 * Tests that change nothing of their process that others could notice: one process runs many of these files, and reads
 * each module once. Starting a process and reading the modules again took as long as half of their tests.
 */
const TESTS_THAT_SHARE_A_PROCESS = [
  'packages/{client,contract,gateway,runtime,testing}/src/**/*.test.ts',
  'packages/middleware/src/{adapters,identity,limiter,misuse,options}/**/*.test.ts',
  'packages/core/src/{algorithms,limiter,options,policy,rule}/**/*.test.ts',
  'packages/core/src/store/{deny-cache,fallback,leased}/**/*.test.ts',
]

/** Runs tests of the middleware once more, with frameworks as a folder below tools/frameworks has them installed. */
function withFrameworks(folder: string, tests: readonly string[]): TestProjectInlineConfiguration {
  const importer = join(import.meta.dirname, 'tools/frameworks', folder, 'package.json')
  return {
    extends: true,
    plugins: [
      {
        name: `frameworks-of-${folder}`,
        enforce: 'pre',
        resolveId(source, _importer, options) {
          if (!/^(?:express|fastify|hono|koa|@nestjs\/[a-z-]+)(?:\/|$)/.test(source)) return null
          return this.resolve(source, importer, { ...options, skipSelf: true })
        },
      },
    ],
    test: { name: folder, include: tests.map((path) => `${MIDDLEWARE_TESTS}/${path}`) },
  }
}

export default defineConfig({
  // Packages of this workspace resolve to their sources: no build before a test.
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'current', include: TESTS, exclude: [...NO_TESTS, ...TESTS_THAT_SHARE_A_PROCESS] },
      },
      {
        extends: true,
        test: { name: 'shared process', include: TESTS_THAT_SHARE_A_PROCESS, isolate: false },
      },
      withFrameworks('oldest', [
        'adapters/{express,fastify,hono,koa,nest}/*.test.ts',
        'adapters/express-rate-limit/express-rate-limit.test.ts',
        'scenarios/*.test.ts',
        'options/framework-detection.test.ts',
      ]),
      withFrameworks('nest-11', ['adapters/nest/*.test.ts', 'scenarios/beginner-mistakes.test.ts']),
    ],
    exclude: NO_TESTS,
    // Type tests (*.test-d.ts, with expectTypeOf) are part of the TypeScript project of their package: `tsc -b` fails
    // on them. vitest could compile them once more, as a preview feature that says so on every run.
    setupFiles: ['tools/leak-guard.ts', 'tools/property-seed.ts'],
    // A process per file: tests of worker threads, shared memory and the whole process need one of their own.
    pool: 'forks',
    // Threads that strip types from sources all call WebAssembly. V8 13.6 frees a compiled import wrapper twice when
    // several threads compile it at the same time, and aborts ("Check failed: jit_page.has_value()"). So wrappers stay
    // generic.
    execArgv: ['--wasm-wrapper-tiering-budget=1000000000'],
    // Many tests wait for servers, timeouts and browsers: a third process uses two cores better.
    maxWorkers: 3,
    // Tests that bundle or compile the whole package take a minute on a slow machine.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // A `.only` that was left in must not pass for a full run, on any machine.
    allowOnly: false,
    // Every mock ends with its test.
    restoreMocks: true,
    unstubGlobals: true,
  },
})
