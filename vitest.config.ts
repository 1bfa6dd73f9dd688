import { defineConfig } from 'vitest/config'

export default defineConfig({
  // Packages of this workspace resolve to their sources: no build before a test.
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    include: ['packages/**/*.test.ts', 'apps/**/*.test.ts', 'bench/**/*.test.ts', 'tools/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    // Type tests (*.test-d.ts, with expectTypeOf) are part of the TypeScript project of their package: `tsc -b` fails
    // on them. vitest could compile them once more, as a preview feature that says so on every run.
    setupFiles: ['tools/leak-guard.ts', 'tools/property-seed.ts'],
    // A process per file: tests of worker threads and shared memory need one of their own.
    pool: 'forks',
    // Tests that race threads need the cores; more processes than cores only add noise.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A `.only` that was left in must not pass for a full run, on any machine.
    allowOnly: false,
    // Every mock ends with its test.
    restoreMocks: true,
    unstubGlobals: true,
  },
})
