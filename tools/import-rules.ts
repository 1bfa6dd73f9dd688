import { builtinModules } from 'node:module'
import { posix } from 'node:path'
import type { ImportRow } from './architecture.ts'
import { importTable, testImports } from './architecture.ts'
import type { ImportSite } from './import-scanner.ts'
import { scanImports } from './import-scanner.ts'
import type { WorkspacePackage } from './workspace.ts'

/** A source file, by its path relative to the repository. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** An import that the architecture forbids. */
export interface Violation {
  readonly path: string
  readonly line: number
  readonly specifier: string
  /** What the rule says, and what to do. */
  readonly rule: string
}

/** `packages/core/src/limiter/limiter.ts:3 imports 'node:fs': <rule>`, as an editor can jump to it. */
export function describeViolation({ path, line, specifier, rule }: Violation): string {
  return `${path}:${line} imports '${specifier}': ${rule}`
}

/** Checks every import of the sources of one package against the table. */
export function checkImports(
  owner: WorkspacePackage,
  files: readonly SourceFile[],
  workspace: readonly WorkspacePackage[],
): Violation[] {
  const row = importTable[owner.id]
  if (row === undefined) {
    const rule = `package '${owner.id}' has no row in tools/architecture.ts; add one that says what it may import`
    return [{ path: owner.folder, line: 1, specifier: '*', rule }]
  }
  return files.flatMap((file) =>
    scanImports(file.text, file.path).flatMap((site) => {
      const rule = brokenRule({ owner, row, file, site, workspace })
      return rule === undefined
        ? []
        : [{ path: file.path, line: site.line, specifier: site.specifier ?? '(computed)', rule }]
    }),
  )
}

/** Whether a file is a test: those may import more, and are never published. */
function isTestFile(path: string): boolean {
  return /\.test(?:-d|\.[a-z-]+)?\.tsx?$/.test(path)
}

interface Question {
  readonly owner: WorkspacePackage
  readonly row: ImportRow
  readonly file: SourceFile
  readonly site: ImportSite
  readonly workspace: readonly WorkspacePackage[]
}

function brokenRule(question: Question): string | undefined {
  const { owner, row, file, site, workspace } = question
  const { specifier } = site
  const isTest = isTestFile(file.path)
  if (specifier === undefined) {
    return isTest ? undefined : 'an import whose module is computed cannot be checked; write the module in quotes'
  }
  if (/^\/|^file:/.test(specifier)) return 'an absolute path exists on one machine only; import a package by its name'
  if (specifier.startsWith('.')) return brokenRelativeRule(owner, file.path, specifier)
  if (isNodeModule(specifier)) {
    if (row.node || isTest) return undefined
    return `'${owner.id}' runs without Node and imports no Node module; take what it needs as an argument`
  }
  const target = workspace.find(({ manifest }) => packageName(specifier) === manifest.name)
  return target === undefined ? brokenNpmRule(question, specifier) : brokenWorkspaceRule(question, specifier, target)
}

function brokenRelativeRule(owner: WorkspacePackage, path: string, specifier: string): string | undefined {
  const target = posix.join(posix.dirname(path), specifier)
  if (target.startsWith(`${owner.folder}/src/`)) return undefined
  return `a relative import stays inside ${owner.folder}/src; import another package by its name`
}

function brokenWorkspaceRule(question: Question, specifier: string, target: WorkspacePackage): string | undefined {
  const { owner, row, file } = question
  if (target.id === owner.id) return 'a package does not import itself by name; use a relative import'
  const isTest = isTestFile(file.path)
  const entry = specifier.slice(packageName(specifier).length)
  const isAllowed =
    row.workspace === 'any' ||
    row.workspace.includes(target.id) ||
    row.workspace.includes(`${target.id}${entry}`) ||
    (isTest && (testImports.workspace.includes(target.id) || isDeclaredForTests(owner, target)))
  if (!isAllowed && testImports.workspace.includes(target.id)) {
    return `'${target.id}' is for tests; sources of '${owner.id}' do not import it`
  }
  if (!isAllowed) return `'${owner.id}' may not import '${target.id}'; the table is in tools/architecture.ts`
  const subpath = `.${entry}`
  if (!Object.hasOwn(target.manifest.exports ?? {}, subpath)) {
    return `'${subpath}' is not in the exports of ${target.folder}/package.json; import what the package offers`
  }
  if (subpath === './internal' && owner.id === 'sluice' && !isTest) {
    return `'internal' is for the packages of this workspace; the facade offers only what is public`
  }
  return undefined
}

function brokenNpmRule(question: Question, specifier: string): string | undefined {
  const { owner, row, file } = question
  const name = packageName(specifier)
  const isTest = isTestFile(file.path)
  if (isTest && (testImports.npm.includes(name) || Object.hasOwn(owner.manifest.devDependencies ?? {}, name))) {
    return undefined
  }
  if (row.npm === 'none') return `'${owner.id}' imports no package from npm`
  const { dependencies, peerDependencies, devDependencies } = owner.manifest
  const declared = {
    peers: { ...peerDependencies },
    dependencies: { ...dependencies, ...peerDependencies },
    any: { ...dependencies, ...peerDependencies, ...devDependencies },
  }[row.npm]
  if (Object.hasOwn(declared, name)) return undefined
  const places = { peers: 'peerDependencies', dependencies: 'dependencies', any: 'dependencies' }
  return `'${name}' is not in the ${places[row.npm]} of ${owner.folder}/package.json`
}

/** Whether the tests of a package say that they need another. A test may look from above: it tries the two together. */
function isDeclaredForTests(owner: WorkspacePackage, target: WorkspacePackage): boolean {
  const { name } = target.manifest
  return name !== undefined && Object.hasOwn(owner.manifest.devDependencies ?? {}, name)
}

function isNodeModule(specifier: string): boolean {
  return specifier.startsWith('node:') || builtinModules.includes(specifier)
}

/** `@scope/name/sub/path` and `name/sub/path` without their subpath. */
function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}
