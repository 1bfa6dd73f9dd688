import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { importTable, packageIdOf, renderImportTable, tableMarkers } from './architecture.ts'
import { findCycles, findFolderCycles } from './import-cycles.ts'
import type { SourceFile } from './import-rules.ts'
import { checkImports, describeViolation } from './import-rules.ts'
import { repositoryFiles } from './repository-files.ts'
import type { WorkspacePackage } from './workspace.ts'
import { readWorkspace, repositoryRoot } from './workspace.ts'

const workspace = readWorkspace(repositoryRoot)

function sourcesOf(folder: string): SourceFile[] {
  return repositoryFiles(repositoryRoot, `${folder}/src`)
    .filter((path) => /\.[cm]?[jt]sx?$/.test(path))
    .map((path) => ({ path, text: readFileSync(join(repositoryRoot, path), 'utf8') }))
}

describe('the sources', () => {
  it.each(workspace.map((item) => [item.folder, item] as const))(
    'of %s import only what the table allows',
    (_, item) => {
      expect(checkImports(item, sourcesOf(item.folder), workspace).map(describeViolation)).toEqual([])
    },
  )
})

describe('the folders', () => {
  const isSource = ({ path }: SourceFile): boolean => !/\.(?:test|suite|fixture)\b/.test(path)

  it.each(workspace.map(({ folder }) => [folder]))('of %s do not import each other in a circle', (folder) => {
    const cycles = findFolderCycles(sourcesOf(folder).filter(isSource), `${folder}/src`)
    expect(cycles.map((cycle) => cycle.join(' -> '))).toEqual([])
  })

  it('are found when they do, files of the root each by itself', () => {
    const file = (path: string, ...imports: string[]): SourceFile => ({
      path: `p/src/${path}`,
      text: imports.map((specifier) => `import '${specifier}'`).join('\n'),
    })
    const files = [file('index.ts', './a/one.ts'), file('a/one.ts', '../b/two.ts'), file('b/two.ts', '../errors.ts')]
    expect(findFolderCycles([...files, file('errors.ts')], 'p/src')).toEqual([])
    expect(findFolderCycles([...files, file('b/three.ts', '../a/four.ts'), file('a/four.ts')], 'p/src')).toEqual([
      ['p/src/a', 'p/src/b', 'p/src/a'],
    ])
  })
})

describe('the import table', () => {
  it('stands in ARCHITECTURE.md as it is enforced', () => {
    const document = readFileSync(join(repositoryRoot, 'ARCHITECTURE.md'), 'utf8')
    const written = document.split(tableMarkers.begin)[1]?.split(tableMarkers.end)[0]?.trim()
    expect(written).toBe(renderImportTable(new Set(workspace.map(({ id }) => id))))
  })

  it('names only packages that have a row', () => {
    const named = Object.values(importTable).flatMap((row) => (row.workspace === 'any' ? [] : row.workspace))
    expect(named.filter((entry) => importTable[packageIdOf(entry)] === undefined)).toEqual([])
  })

  it('has no circle of packages', () => {
    const edges = Object.entries(importTable).map(
      ([id, row]) => [id, row.workspace === 'any' ? [] : row.workspace.map(packageIdOf)] as const,
    )
    expect(findCycles(new Map(edges))).toEqual([])
  })
})

/** A package as its package.json would describe it, with the two entries that every library here has. */
function fakePackage(folder: string, manifest: WorkspacePackage['manifest'] = {}): WorkspacePackage {
  const id = folder.slice(folder.lastIndexOf('/') + 1)
  const name = id === 'sluice' ? 'sluice' : `@sluice/${id}`
  return { id, folder, project: undefined, manifest: { name, exports: { '.': {}, './internal': {} }, ...manifest } }
}

describe('checkImports', () => {
  const fakes = {
    core: fakePackage('packages/core'),
    runtime: fakePackage('packages/runtime'),
    contract: fakePackage('packages/contract'),
    testing: fakePackage('packages/testing', {
      peerDependencies: { vitest: '*' },
      exports: { '.': {}, './servers': {} },
    }),
    sluice: fakePackage('packages/sluice'),
    service: fakePackage('apps/service', { dependencies: { ioredis: '*' } }),
    harness: fakePackage('apps/harness'),
    bench: fakePackage('bench', { devDependencies: { 'rate-limiter-flexible': '*' } }),
    unknown: fakePackage('packages/unknown'),
  }

  function problems(owner: keyof typeof fakes, file: string, text: string): string[] {
    const { folder } = fakes[owner]
    const found = checkImports(fakes[owner], [{ path: `${folder}/src/${file}`, text }], Object.values(fakes))
    return found.map(describeViolation)
  }

  it.each([
    ['core', 'a.ts', './b.ts'],
    ['core', 'algorithms/a.ts', '../b.ts'],
    ['core', 'a.test.ts', 'vitest'],
    ['core', 'a.test.ts', 'fast-check'],
    ['core', 'a.test.ts', 'node:worker_threads'],
    ['core', 'a.test.ts', '@sluice/testing'],
    ['core', 'a.test-d.ts', 'vitest'],
    ['runtime', 'a.ts', 'node:crypto'],
    ['testing', 'a.suite.ts', 'vitest'],
    ['testing', 'a.ts', '@sluice/core/internal'],
    ['sluice', 'index.ts', '@sluice/core'],
    ['sluice', 'testing.ts', '@sluice/testing'],
    ['service', 'a.ts', 'ioredis'],
    ['service', 'a.ts', 'ioredis/built/types'],
    ['service', 'a.ts', '@sluice/core'],
    ['harness', 'a.ts', '@sluice/runtime'],
    ['harness', 'a.ts', '@sluice/testing/servers'],
    ['harness', 'a.test.ts', '@sluice/testing'],
    ['bench', 'a.ts', '@sluice/testing'],
    ['bench', 'a.ts', 'rate-limiter-flexible'],
  ] as const)('lets %s/%s import %s', (owner, file, specifier) => {
    expect(problems(owner, file, `import '${specifier}'`)).toEqual([])
  })

  it.each([
    ['core', 'a.ts', 'node:fs', "'core' runs without Node"],
    ['core', 'a.ts', 'fs', "'core' runs without Node"],
    ['core', 'a.ts', 'lodash', "'core' imports no package from npm"],
    ['core', 'a.test.ts', 'lodash', "'core' imports no package from npm"],
    ['core', 'a.ts', 'vitest', "'core' imports no package from npm"],
    ['core', 'a.ts', '@sluice/runtime', "'core' may not import 'runtime'"],
    ['core', 'a.test.ts', '@sluice/runtime', "'core' may not import 'runtime'"],
    ['core', 'a.ts', '@sluice/testing', "'testing' is for tests"],
    ['core', 'a.ts', '@sluice/core', 'does not import itself'],
    ['core', 'a.ts', '../../runtime/src/index.ts', 'stays inside packages/core/src'],
    ['core', 'a.ts', '../package.json', 'stays inside packages/core/src'],
    ['core', 'a.ts', '/home/me/core/src/index.ts', 'exists on one machine only'],
    ['bench', 'a.ts', 'file:///home/me/a.ts', 'exists on one machine only'],
    ['runtime', 'a.ts', '@sluice/core', "'runtime' may not import 'core'"],
    ['service', 'a.ts', '@sluice/core/src/limiter.ts', "'./src/limiter.ts' is not in the exports of packages/core"],
    ['service', 'a.ts', '@sluice/testing', "'testing' is for tests"],
    ['service', 'a.ts', 'express', "'express' is not in the dependencies of apps/service"],
    ['testing', 'a.ts', 'fast-check', "'fast-check' is not in the peerDependencies of packages/testing"],
    ['harness', 'a.ts', '@sluice/testing', "'testing' is for tests"],
    ['service', 'a.ts', '@sluice/testing/servers', "'testing' is for tests"],
    ['sluice', 'index.ts', '@sluice/core/internal', 'offers only what is public'],
    ['bench', 'a.ts', 'express', "'express' is not in the dependencies of bench"],
    ['unknown', 'a.ts', './b.ts', "package 'unknown' has no row"],
  ] as const)('does not let %s/%s import %s', (owner, file, specifier, rule) => {
    expect(problems(owner, file, `import '${specifier}'`)).toEqual([expect.stringContaining(rule)])
  })

  it('names file, line, import and rule', () => {
    expect(problems('core', 'a.ts', "import './b.ts'\nexport type { Stats } from 'node:fs'")).toEqual([
      "packages/core/src/a.ts:2 imports 'node:fs': 'core' runs without Node and imports no Node module; take what " +
        'it needs as an argument',
    ])
  })

  it('rejects a computed import outside tests', () => {
    expect(problems('service', 'a.ts', 'await import(path)')).toEqual([expect.stringContaining('cannot be checked')])
    expect(problems('service', 'a.test.ts', 'await import(path)')).toEqual([])
  })
})

describe('findCycles', () => {
  function cycles(edges: Readonly<Record<string, readonly string[]>>): string[][] {
    return findCycles(new Map(Object.entries(edges)))
  }

  it('finds none in a tree', () => {
    expect(cycles({ a: ['b', 'c'], b: ['c'], c: [] })).toEqual([])
  })

  it('names the nodes of a shortest circle', () => {
    expect(cycles({ a: ['b'], b: ['c'], c: ['a'], d: ['a'] })).toEqual([['a', 'b', 'c', 'a']])
  })

  it('finds a node that leads to itself', () => {
    expect(cycles({ a: ['a'] })).toEqual([['a', 'a']])
  })

  it('names every separate circle', () => {
    expect(cycles({ a: ['b'], b: ['a'], c: ['d'], d: ['c'] })).toHaveLength(2)
  })
})
