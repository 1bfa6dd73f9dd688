import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { statedSizes } from './package-sizes.ts'
import { stagePackage } from './stage-package.ts'
import type { StagedManifest } from './staged-manifest.ts'
import type { Manifest } from './workspace.ts'

/** A compiled workspace: the entry of `sluice` names `@sluice/core`, whose index names a file of its own. */
const FILES: Readonly<Record<string, string>> = {
  LICENSE: 'MIT\n',
  'package.json': '{ "repository": { "url": "git+https://git.example/sluice.git" } }\n',
  'CHANGELOG.md': '# Changelog\n',
  'apps/cli/bin/sluice.mjs': '#!/usr/bin/env node\n',
  'packages/config-store/sluice.schema.json': '{}\n',
  'packages/sluice/README.md': '# sluice\n',
  'packages/sluice/dist/index.js': "export { make } from '@sluice/core';\n//# sourceMappingURL=index.js.map\n",
  'packages/sluice/dist/index.d.ts': "export { make, type Made } from '@sluice/core';\n",
  'packages/core/dist/index.js': "export { make } from './deep/make.js';\n",
  'packages/core/dist/index.d.ts': "export { make, type Made } from './deep/make.ts';\n",
  'packages/core/dist/index.test.js': "import './index.js';\n",
  'packages/core/dist/deep/make.js': 'export const make = 1;\n',
  'packages/core/dist/deep/make.d.ts': "import type { Kind } from '../kind.ts';\nexport type Made = Kind;\n",
  'packages/core/dist/kind.js': 'export {};\n',
  'packages/core/dist/kind.d.ts': 'export type Kind = 1;\n',
}

const ENTRY = { source: './src/index.ts', types: './dist/index.d.ts', default: './dist/index.js' }

const MANIFESTS: Readonly<Record<string, Manifest>> = {
  sluice: { name: 'sluice', version: '1.2.3', exports: { '.': ENTRY }, dependencies: { '@sluice/core': '1.2.3' } },
  core: { name: '@sluice/core', exports: { '.': ENTRY } },
}

interface Staged {
  readonly manifest: StagedManifest
  readonly files: readonly string[]
  readonly read: (path: string) => string
}

/** Stages the workspace above, with some of its files and manifests other than they are there. */
function staged(
  files: Readonly<Record<string, string>> = {},
  manifests: Readonly<Record<string, Manifest>> = {},
): Staged {
  const root = mkdtempSync(join(tmpdir(), 'sluice-staged-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const packageFiles = Object.entries({ ...MANIFESTS, ...manifests }).map(([id, content]) => [
    `packages/${id}/package.json`,
    JSON.stringify(content),
  ])
  const written: Record<string, string> = { ...FILES, ...files, ...Object.fromEntries(packageFiles) }
  for (const [path, text] of Object.entries(written)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  const folder = join(root, 'staged')
  const manifest = stagePackage({ root, folder })
  return {
    manifest,
    files: readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
      .sort(),
    read: (path) => readFileSync(join(folder, path), 'utf8'),
  }
}

describe('stagePackage', () => {
  it('takes what the entries reach, and nothing else', () => {
    expect(staged().files).toEqual([
      ...['CHANGELOG.md', 'LICENSE', 'README.md', 'bin/sluice.mjs'],
      ...['dist/cjs/index.d.cts', 'dist/index.d.ts', 'dist/index.js'],
      ...['dist/packages/core/deep/make.d.ts', 'dist/packages/core/deep/make.js'],
      ...['dist/packages/core/index.d.ts', 'dist/packages/core/index.js', 'dist/packages/core/kind.d.ts'],
      ...['package.json', 'sluice.schema.json'],
    ])
  })

  it('names files where the sources name packages, in code and types', () => {
    const { read } = staged()
    expect(read('dist/index.js')).toBe("export { make } from './packages/core/index.js';\n")
    expect(read('dist/index.d.ts')).toBe("export { make, type Made } from './packages/core/index.js';\n")
    expect(read('dist/packages/core/deep/make.d.ts')).toContain("from '../kind.js';")
  })

  it('leaves the names of packages alone where they are not imported', () => {
    const text =
      "// see '@sluice/core'\nconst named = '@sluice/core';\nexport { make as 'other' } from '@sluice/core';\n"
    expect(staged({ 'packages/sluice/dist/index.js': text }).read('dist/index.js')).toBe(
      text.replace(/'@sluice\/core';\n$/, "'./packages/core/index.js';\n"),
    )
  })

  it('takes files that are started as threads', () => {
    const files = {
      'packages/core/dist/deep/make.js':
        "const end = 'js';\nnew Worker(new URL(`./thread.${end}`, import.meta.url));\nnew URL('../other.js', " +
        'import.meta.url);\n',
      'packages/core/dist/deep/thread.js': 'export {};\n',
      'packages/core/dist/other.js': 'export {};\n',
    }
    expect(staged(files).files).toEqual(
      expect.arrayContaining(['dist/packages/core/deep/thread.js', 'dist/packages/core/other.js']),
    )
  })

  it('rejects a thread whose file it cannot tell', () => {
    const code = "const name = './thread.js';\nnew Worker(new URL(name, import.meta.url));\n"
    expect(() => staged({ 'packages/core/dist/deep/make.js': code })).toThrow(
      expect.objectContaining({ code: 'WORKER_UNCLEAR' }),
    )
  })

  it('rejects what is not compiled', () => {
    const code = "export { make } from './gone.js';\n"
    expect(() => staged({ 'packages/core/dist/index.js': code })).toThrow(
      expect.objectContaining({ code: 'MODULE_MISSING' }),
    )
  })
})

describe('the package.json of the staged package', () => {
  const NEEDY: Manifest = {
    ...MANIFESTS['core'],
    dependencies: { '@sluice/config-store': '1.2.3', yaml: '2.0.0' },
    peerDependencies: { redis: '>=5.0.0' },
  }
  const IMPORTS = "import 'yaml';\nimport 'redis';\nimport 'node:fs';\nexport const make = 1;\n"

  it('asks for what its parts need from npm, peers only where they are used', () => {
    const { manifest } = staged({ 'packages/core/dist/deep/make.js': IMPORTS }, { core: NEEDY })
    expect(manifest).toMatchObject({ name: 'sluice', version: '1.2.3', type: 'module', sideEffects: false })
    expect(manifest).toMatchObject({ repository: { url: 'git+https://git.example/sluice.git' } })
    expect(manifest).toMatchObject({ publishConfig: { access: 'public', provenance: true } })
    expect(manifest.dependencies).toEqual({ yaml: '2.0.0' })
    expect(manifest.peerDependencies).toEqual({ redis: '>=5.0.0' })
    expect(manifest.peerDependenciesMeta).toEqual({ redis: { optional: true } })
  })

  it('has the entries without their sources, and as CommonJS for what cannot load ES modules', () => {
    const testing = { ...ENTRY, types: './dist/testing.d.ts', default: './dist/testing.js' }
    const sluice = { ...MANIFESTS['sluice'], exports: { '.': ENTRY, './testing': testing } }
    const files = { 'packages/sluice/dist/testing.js': '', 'packages/sluice/dist/testing.d.ts': 'export {};\n' }
    const { manifest, read } = staged(files, { sluice })
    const published = { types: './dist/index.d.ts', default: './dist/index.js' }
    expect(Object.entries(manifest.exports)).toEqual([
      [
        '.',
        {
          'module-sync': published,
          require: { types: './dist/cjs/index.d.cts', default: './dist/cjs/index.cjs' },
          ...published,
        },
      ],
      ['./testing', { types: './dist/testing.d.ts', default: './dist/testing.js' }],
      ['./sluice.schema.json', './sluice.schema.json'],
      ['./openapi.json', './openapi.json'],
      ['./package.json', './package.json'],
    ])
    expect(Object.keys(manifest.exports['.']!)).toEqual(['module-sync', 'require', 'types', 'default'])
    expect(read('dist/cjs/index.d.cts')).toBe("// @ts-ignore\nexport * from '../index.js';\n")
  })

  it('cannot be made when a part does not say what it imports', () => {
    expect(() => staged({ 'packages/core/dist/deep/make.js': IMPORTS })).toThrow(
      expect.objectContaining({ code: 'UNDECLARED_DEPENDENCY' }),
    )
  })

  it('cannot be made when two parts ask for different versions', () => {
    const sluice = { ...MANIFESTS['sluice'], dependencies: { yaml: '1.0.0' } }
    expect(() => staged({}, { core: NEEDY, sluice })).toThrow(expect.objectContaining({ code: 'RANGES_DIFFER' }))
  })
})

describe('the documents of the staged package', () => {
  const DOCUMENTS = {
    'packages/sluice/README.md':
      'See [start](../../docs/guides/start.md#a), [why](../../docs/decisions/why.md), [b](https://b.example), ' +
      '[c](#c).\n',
    'docs/guides/start.md':
      'See [errors](../reference/errors.md#code), [example](../../examples/one/README.md), ' +
      '[home](../../packages/sluice/README.md).\n',
    'docs/reference/errors.md': '[start](../guides/start.md)\n',
    'docs/decisions/why.md': 'Because.\n',
  }

  it('are the guides and the reference, where warnings say they are', () => {
    const { files } = staged(DOCUMENTS)
    expect(files.filter((file) => file.endsWith('.md'))).toEqual([
      'CHANGELOG.md',
      'README.md',
      'docs/guides/start.md',
      'docs/reference/errors.md',
    ])
  })

  it('link to each other, and to nothing that is not there', () => {
    const { read } = staged(DOCUMENTS)
    expect(read('README.md')).toBe('See [start](docs/guides/start.md#a), why, [b](https://b.example), [c](#c).\n')
    expect(read('docs/guides/start.md')).toBe(
      'See [errors](../reference/errors.md#code), example, [home](../../README.md).\n',
    )
    expect(read('docs/reference/errors.md')).toBe('[start](../guides/start.md)\n')
  })
})

describe('statedSizes', () => {
  it('reads the rows that state a size', () => {
    const table =
      "| import | size |\n|---|---|\n| `import { a } from 'sluice/b'` | for c | 20 kB |\n| `import { d } from 'e'` " +
      '| tests |\n'
    expect(statedSizes(table)).toEqual([
      { entry: 'sluice/b', program: "import { a } from 'sluice/b'; globalThis.kept = a", kilobytes: 20 },
    ])
  })
})
