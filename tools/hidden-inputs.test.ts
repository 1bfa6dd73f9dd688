import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { repositoryRoot } from './workspace.ts'

// The lint rules against hidden time, chance and environment, run for real on files that break them: a pattern that
// silently stops matching after an update of the linter would otherwise go unnoticed.

const HIDDEN = {
  time: [
    'Date.now()',
    'Date.now',
    "Date['now']()",
    'const { now } = Date',
    'new Date()',
    'new Date',
    'Date()',
    'globalThis.Date.now()',
    'performance.now()',
    'performance.timeOrigin',
    'globalThis.performance.now()',
    'setTimeout(() => 0, 5)',
    'const later = setTimeout',
    'globalThis.setTimeout(() => 0, 5)',
    "globalThis['setTimeout']",
    'setInterval(() => 0, 5)',
    'setImmediate(() => 0)',
    'AbortSignal.timeout(5)',
    'process.hrtime.bigint()',
    "import { setTimeout as sleep } from 'node:timers/promises'",
    "import timers from 'node:timers'",
    "import { performance as p } from 'node:perf_hooks'",
  ],
  chance: [
    'Math.random()',
    'const draw = Math.random',
    'const { random } = Math',
    "Math['random']()",
    'globalThis.Math.random()',
    'crypto.randomUUID()',
    'crypto.getRandomValues(new Uint8Array(8))',
    'globalThis.crypto',
    "import { randomBytes } from 'node:crypto'",
    "import { randomUUID as id } from 'node:crypto'",
  ],
  environment: [
    "process.env['PORT']",
    'process.env.PORT',
    "process['env']",
    'const { env } = process',
    'globalThis.process',
    "import { env } from 'node:process'",
    "import process from 'node:process'",
  ],
} as const

const OPEN = [
  'new Date(0)',
  'new Date(2026, 0)',
  'Date.UTC(2026, 0)',
  'Date.parse(text)',
  'clock.now()',
  'clock.setTimeout(() => 0, 5)',
  'timers.setInterval(() => 0, 5)',
  'const setTimeoutLike = 1',
  'Math.floor(1.5)',
  'random.next()',
  'process.exitCode = 1',
  'settings.env',
  "import { createHash } from 'node:crypto'",
  '// Date.now()',
  "const text = 'Math.random()'",
  'type Started = Date',
]

/** Where each kind is allowed, as biome.jsonc lists it. */
const EXEMPT = {
  time: [
    'packages/core/src/system/clock-and-timers.ts',
    'packages/runtime/src/clock-and-random.ts',
    'bench/src/a.ts',
    'tools/a.ts',
  ],
  chance: ['packages/core/src/system/random.ts', 'packages/runtime/src/clock-and-random.ts', 'bench/src/a.ts'],
  environment: [
    'apps/service/src/settings/settings.ts',
    'packages/runtime/src/clock-and-random.ts',
    'bench/src/a.ts',
    'tools/a.ts',
  ],
} as const

/** A file for each thing to try; the linter runs once over all of them. */
const fixtures = new Map<string, string>()

function fixture(path: string, line: string): string {
  fixtures.set(path, `${line}\n`)
  return path
}

const hidden = Object.entries(HIDDEN).flatMap(([kind, lines]) =>
  lines.map((line, index) => [kind, line, fixture(`packages/core/src/${kind}-${index}.ts`, line)] as const),
)
const open = OPEN.map((line, index) => [line, fixture(`packages/core/src/open-${index}.ts`, line)] as const)
const exempt = Object.entries(EXEMPT).flatMap(([kind, paths]) =>
  paths.map((path) => {
    const before = fixtures.get(path) ?? ''
    return [kind, path, fixture(path, before + HIDDEN[kind as keyof typeof HIDDEN][0])] as const
  }),
)
const inTests = fixture('packages/core/src/limiter.test.ts', HIDDEN.time[0])

describe('the linter', () => {
  let folder: string
  /** Messages of the three plugins, by file. */
  const found = new Map<string, string[]>()

  beforeAll(() => {
    // Outside the repository, so that a run of the linter over the repository never sees the fixtures.
    folder = mkdtempSync(join(tmpdir(), 'sluice-lint-'))
    cpSync(join(repositoryRoot, 'biome.jsonc'), join(folder, 'biome.jsonc'))
    cpSync(join(repositoryRoot, 'tools/lint'), join(folder, 'tools/lint'), { recursive: true })
    for (const [path, text] of fixtures) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    const biome = join(repositoryRoot, 'node_modules/@biomejs/biome/bin/biome')
    const args = [biome, 'lint', '--vcs-enabled=false', '--reporter=json', '--max-diagnostics=none', '.']
    const run = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
    const report = JSON.parse(run.stdout) as {
      readonly diagnostics: readonly { category: string; message: string; location: { path: string } }[]
    }
    for (const { category, message, location } of report.diagnostics) {
      if (category === 'plugin') found.set(location.path, [...(found.get(location.path) ?? []), message])
    }
  })

  afterAll(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  it.each(hidden)('reports hidden %s: %s', (kind, _line, path) => {
    expect(found.get(path)).toContainEqual(expect.stringMatching(new RegExp(`^Hidden ${kind}\\.`)))
  })

  it.each(open)('lets pass: %s', (_line, path) => {
    expect(found.get(path)).toBeUndefined()
  })

  it.each(exempt)('allows %s in %s', (kind, _name, path) => {
    expect(found.get(path) ?? []).not.toContainEqual(expect.stringMatching(new RegExp(`^Hidden ${kind}\\.`)))
  })

  it('makes no exception for tests', () => {
    expect(found.get(inTests)).toHaveLength(1)
  })
})
