import { posix } from 'node:path'
import { importTable, packageIdOf } from './architecture.ts'
import type { Manifest, WorkspacePackage } from './workspace.ts'
import { isPublished } from './workspace.ts'

/** What the shape of a package is compared with. */
export interface ShapeContext {
  /** Every package of the workspace. */
  readonly workspace: readonly WorkspacePackage[]
  /** The `references` of the root tsconfig.json, as paths relative to the repository. */
  readonly rootReferences: readonly string[]
  /** Whether a file exists, by its path relative to the repository. */
  readonly exists: (path: string) => boolean
}

const CONDITIONS = ['source', 'types', 'default']

/** Everything that keeps a package from looking like its siblings, one sentence each; none when it is in shape. */
export function shapeProblems(item: WorkspacePackage, context: ShapeContext): string[] {
  return [
    ...manifestProblems(item),
    ...exportProblems(item, context.exists),
    ...publishedProblems(item),
    ...(context.exists(`${item.folder}/README.md`) ? [] : ['README.md is missing: it says what the package is']),
    ...projectProblems(item, context),
    ...dependencyProblems(item, context.workspace),
  ]
}

function manifestProblems({ id, folder, manifest }: WorkspacePackage): string[] {
  const name = id === 'sluice' ? 'sluice' : `@sluice/${id}`
  const isLibrary = folder.startsWith('packages/')
  return problems([
    [manifest.name === name, `name must be '${name}'`],
    [/^\d+\.\d+\.\d+$/.test(manifest.version ?? ''), 'version must be x.y.z'],
    [(manifest.description ?? '').length >= 15, 'description must say in a sentence what the package is'],
    [manifest.license === 'MIT', "license must be 'MIT'"],
    [manifest.type === 'module', "type must be 'module'"],
    [manifest.engines?.['node'] === '>=22.19.0', "engines.node must be '>=22.19.0'"],
    [!isLibrary || manifest.sideEffects === false, 'a library must say sideEffects: false'],
    [!isLibrary || manifest.exports?.['.'] !== undefined, "a library must export '.'"],
    [isLibrary || manifest.private === true, 'what is not a library must be private'],
  ])
}

/** Each subpath names its source, its types and its code, and these are the same file before and after the compiler. */
function exportProblems({ folder, manifest }: WorkspacePackage, exists: ShapeContext['exists']): string[] {
  return Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]) => {
    const at = `exports['${subpath}']`
    if (typeof target === 'string') return [`${at} must have the conditions ${CONDITIONS.join(', ')}`]
    const source = target['source'] ?? ''
    const stem = /^\.\/src\/(.+)\.tsx?$/.exec(source)?.[1]
    return problems([
      // The first condition that matches wins, so the order is part of the meaning.
      [Object.keys(target).join() === CONDITIONS.join(), `${at} must have the conditions ${CONDITIONS.join(', ')}`],
      [stem !== undefined, `${at}.source must be a TypeScript file in ./src`],
      [exists(posix.join(folder, source)), `${at}.source names ${source}, which does not exist`],
      [target['types'] === `./dist/${stem}.d.ts`, `${at}.types must be ./dist/${stem}.d.ts`],
      [target['default'] === `./dist/${stem}.js`, `${at}.default must be ./dist/${stem}.js`],
    ])
  })
}

function publishedProblems(item: WorkspacePackage): string[] {
  if (!isPublished(item)) return []
  const { files = [] } = item.manifest
  return problems([
    [files.includes('dist') && files.includes('src'), 'files must publish dist, and src for its source maps'],
    [files.includes('!**/*.test.*'), "files must leave out the tests of dist and src: '!**/*.test.*'"],
  ])
}

function projectProblems({ folder, project }: WorkspacePackage, { rootReferences }: ShapeContext): string[] {
  const base = posix.relative(folder, 'tsconfig.base.json')
  return problems([
    [project?.extends === base, `tsconfig.json must extend ${base}`],
    [rootReferences.includes(folder), `the root tsconfig.json must reference ${folder}`],
  ])
}

/** package.json, tsconfig references and the import table tell one story. */
function dependencyProblems(item: WorkspacePackage, workspace: readonly WorkspacePackage[]): string[] {
  const { folder, manifest, project, testProject } = item
  const shipped = siblings({ ...manifest.dependencies, ...manifest.peerDependencies }, workspace)
  const forTests = siblings(manifest.devDependencies, workspace)
  const needed = [...shipped, ...forTests].map((sibling) => sibling.folder).sort()
  const references = [...(project?.references ?? []), ...(testProject?.references ?? [])]
  const folders = references
    .map(({ path }) => posix.join(folder, path))
    .filter((path) => path !== folder && path !== `${folder}/`)
  const referenced = [...new Set(folders)].sort()
  return [
    ...problems([
      [
        needed.join() === referenced.join(),
        `tsconfig.json references [${referenced.join(', ')}], package.json depends on [${needed.join(', ')}]; they ` +
          'must agree',
      ],
    ]),
    ...[...shipped, ...forTests].flatMap((sibling) => versionProblems(manifest, sibling)),
    // Tests may try a package together with others; that no circle comes of it, the compiler sees to.
    ...shipped.flatMap((sibling) => edgeProblems(item, sibling)),
  ]
}

function siblings(dependencies: Manifest['dependencies'], workspace: readonly WorkspacePackage[]): WorkspacePackage[] {
  return workspace.filter(({ manifest }) => Object.hasOwn(dependencies ?? {}, manifest.name ?? ''))
}

function versionProblems(manifest: Manifest, sibling: WorkspacePackage): string[] {
  const { name = '', version } = sibling.manifest
  const all = { ...manifest.devDependencies, ...manifest.peerDependencies, ...manifest.dependencies }
  return problems([[all[name] === version, `depends on ${name} ${all[name]}, but its version is ${version}`]])
}

function edgeProblems(item: WorkspacePackage, sibling: WorkspacePackage): string[] {
  const allowed = importTable[item.id]?.workspace ?? []
  const ids = allowed === 'any' ? [sibling.id] : allowed.map(packageIdOf)
  return problems([
    [
      ids.includes(sibling.id),
      `depends on '${sibling.id}', which the table in tools/architecture.ts does not let it import`,
    ],
  ])
}

function problems(rules: readonly (readonly [holds: boolean, problem: string])[]): string[] {
  return rules.filter(([holds]) => !holds).map(([, problem]) => problem)
}
