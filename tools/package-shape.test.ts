import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ShapeContext } from './package-shape.ts'
import { shapeProblems } from './package-shape.ts'
import type { TypeScriptProject, WorkspacePackage } from './workspace.ts'
import { readJson, readWorkspace, repositoryRoot } from './workspace.ts'

const workspace = readWorkspace(repositoryRoot)
const rootProject = readJson<TypeScriptProject>(join(repositoryRoot, 'tsconfig.json'))

describe('the package', () => {
  const context: ShapeContext = {
    workspace,
    rootReferences: (rootProject.references ?? []).map(({ path }) => posix.normalize(path)),
    exists: (path) => existsSync(join(repositoryRoot, path)),
  }

  it.each(workspace.map((item) => [item.folder, item] as const))('%s is in shape', (_folder, item) => {
    expect(shapeProblems(item, context)).toEqual([])
  })
})

describe('the root tsconfig.json', () => {
  it('references only projects that exist', () => {
    const missing = (rootProject.references ?? []).filter(
      ({ path }) => !existsSync(join(repositoryRoot, path.endsWith('.json') ? path : join(path, 'tsconfig.json'))),
    )
    expect(missing).toEqual([])
  })
})

describe('shapeProblems', () => {
  const core: WorkspacePackage = {
    id: 'core',
    folder: 'packages/core',
    manifest: { name: '@sluice/core', version: '0.1.0' },
    project: undefined,
  }
  const contract = {
    ...core,
    id: 'contract',
    folder: 'packages/contract',
    manifest: { name: '@sluice/contract', version: '0.1.0' },
  }
  const runtime = {
    ...core,
    id: 'runtime',
    folder: 'packages/runtime',
    manifest: { name: '@sluice/runtime', version: '0.1.0' },
  }
  const testing = {
    ...core,
    id: 'testing',
    folder: 'packages/testing',
    manifest: { name: '@sluice/testing', version: '0.1.0' },
  }
  const good: WorkspacePackage = {
    id: 'sluice',
    folder: 'packages/sluice',
    manifest: {
      name: 'sluice',
      version: '0.1.0',
      description: 'Limits that hold, in one package',
      license: 'MIT',
      type: 'module',
      sideEffects: false,
      engines: { node: '>=22.19.0' },
      files: ['dist', 'src', '!**/*.test.*'],
      exports: { '.': { source: './src/index.ts', types: './dist/index.d.ts', default: './dist/index.js' } },
      dependencies: { '@sluice/core': '0.1.0' },
    },
    project: { extends: '../../tsconfig.base.json', references: [{ path: '../core' }] },
  }
  const everything: ShapeContext = {
    workspace: [core, contract, runtime, testing, good],
    rootReferences: ['packages/sluice'],
    exists: () => true,
  }

  function problemsWith(change: Partial<WorkspacePackage['manifest']>, rest: Partial<WorkspacePackage> = {}): string[] {
    return shapeProblems({ ...good, ...rest, manifest: { ...good.manifest, ...change } }, everything)
  }

  it('finds nothing wrong with a package in shape', () => {
    expect(shapeProblems(good, everything)).toEqual([])
  })

  it.each([
    [{ name: '@sluice/sluice' }, "name must be 'sluice'"],
    [{ version: '1' }, 'version must be'],
    [{ description: '' }, 'description must say'],
    [{ license: 'ISC' }, "license must be 'MIT'"],
    [{ type: 'commonjs' }, "type must be 'module'"],
    [{ engines: { node: '>=22' } }, 'engines.node'],
    [{ sideEffects: true }, 'sideEffects'],
    [{ exports: {} }, "a library must export '.'"],
    [{ exports: { '.': './src/index.ts' } }, 'must have the conditions source, types, default'],
    [{ files: ['dist', 'src'] }, 'leave out the tests'],
    [{ files: ['dist', '!**/*.test.*'] }, 'files must publish'],
    [{ dependencies: { '@sluice/core': '0.2.0' } }, 'depends on @sluice/core 0.2.0, but its version is 0.1.0'],
  ])('finds %j', (change, problem) => {
    expect(problemsWith(change)).toEqual([expect.stringContaining(problem)])
  })

  it('finds conditions in an order in which the first would win wrongly', () => {
    const entry = { types: './dist/index.d.ts', source: './src/index.ts', default: './dist/index.js' }
    expect(problemsWith({ exports: { '.': entry } })).toEqual([expect.stringContaining('must have the conditions')])
  })

  it('finds entries whose three files are not the same file', () => {
    const entry = { source: './src/a.ts', types: './dist/b.d.ts', default: './dist/c.js' }
    expect(problemsWith({ exports: { '.': entry } })).toEqual([
      "exports['.'].types must be ./dist/a.d.ts",
      "exports['.'].default must be ./dist/a.js",
    ])
  })

  it('finds files that are missing', () => {
    const empty = { ...everything, exists: () => false }
    expect(shapeProblems(good, empty)).toEqual([
      "exports['.'].source names ./src/index.ts, which does not exist",
      'README.md is missing: it says what the package is',
    ])
  })

  it('finds a project that stands apart', () => {
    const lone = { ...good, project: { references: [{ path: '../core' }] } }
    expect(shapeProblems(lone, { ...everything, rootReferences: [] })).toEqual([
      'tsconfig.json must extend ../../tsconfig.base.json',
      'the root tsconfig.json must reference packages/sluice',
    ])
  })

  it('finds references that say something else than package.json', () => {
    const project = { extends: '../../tsconfig.base.json', references: [] }
    expect(problemsWith({}, { project })).toEqual([
      'tsconfig.json references [], package.json depends on [packages/core]; they must agree',
    ])
  })

  it('finds a dependency that the import table does not know', () => {
    const project = { ...good.project, references: [{ path: '../core' }, { path: '../contract' }] }
    expect(
      problemsWith({ dependencies: { '@sluice/core': '0.1.0', '@sluice/contract': '0.1.0' } }, { project }),
    ).toEqual(["depends on 'contract', which the table in tools/architecture.ts does not let it import"])
  })

  it('lets only tests depend on the testing package where the table does not', () => {
    const service = { id: 'service', folder: 'apps/service' }
    const project = { extends: '../../tsconfig.base.json', references: [{ path: '../../packages/testing' }] }
    const manifest = { name: '@sluice/service', private: true, dependencies: {}, devDependencies: {} }
    const context = { ...everything, rootReferences: ['apps/service'] }
    const problems = (dependencies: object): string[] =>
      shapeProblems(
        { ...good, ...service, project, manifest: { ...good.manifest, ...manifest, ...dependencies } },
        context,
      )
    expect(problems({ devDependencies: { '@sluice/testing': '0.1.0' } })).toEqual([])
    expect(problems({ dependencies: { '@sluice/testing': '0.1.0' } })).toEqual([
      expect.stringContaining("depends on 'testing'"),
    ])
  })
})
