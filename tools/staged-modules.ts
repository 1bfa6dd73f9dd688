import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { compiledContract, documentedTypes } from './documented-types.ts'
import { scanImports } from './import-scanner.ts'
import { inlineLuaFiles, luaFilesModule } from './lua-files.ts'
import { ToolError } from './tool-error.ts'
import type { WorkspacePackage } from './workspace.ts'

/** One file of the package to be published. */
export interface StagedModule {
  /** Where the compiler put it, relative to the repository. */
  readonly from: string
  /** Where it goes, relative to the package. */
  readonly to: string
  /** Its text, with every import of another workspace package turned into one of a file beside it. */
  readonly text: string
}

/** Everything that the entries of a package reach. */
export interface StagedModules {
  readonly modules: readonly StagedModule[]
  /** The workspace packages that they come from. */
  readonly packages: readonly WorkspacePackage[]
}

interface Graph {
  readonly root: string
  readonly facade: WorkspacePackage
  readonly workspace: readonly WorkspacePackage[]
}

/**
 * Follows the compiled entries of `facade`, code and types, through all the workspace packages they import. What no
 * entry reaches, tests above all, is left behind.
 *
 * @throws ToolError `MODULE_MISSING` when a file was not compiled, `UNDECLARED_DEPENDENCY` when a package imports
 * something from npm that its package.json does not name, `WORKER_UNCLEAR` when the path of a file that is started
 * is unclear
 */
export function stagedModules(graph: Graph): StagedModules {
  const waiting = entriesOf(graph.facade)
  const seen = new Set(waiting)
  const modules: StagedModule[] = []
  for (let from = waiting.pop(); from !== undefined; from = waiting.pop()) {
    const { module, reached } = stage(from, graph)
    modules.push(module)
    for (const next of reached.filter((path) => !seen.has(path))) {
      seen.add(next)
      waiting.push(next)
    }
  }
  modules.sort((a, b) => (a.to < b.to ? -1 : 1))
  const packages = graph.workspace.filter(({ folder }) => modules.some(({ from }) => from.startsWith(`${folder}/`)))
  return { modules, packages }
}

function entriesOf({ folder, manifest }: WorkspacePackage): string[] {
  return Object.values(manifest.exports ?? {}).flatMap((target) =>
    typeof target === 'string' ? [] : ['types', 'default'].map((condition) => posix.join(folder, target[condition]!)),
  )
}

function stage(from: string, graph: Graph): { readonly module: StagedModule; readonly reached: readonly string[] } {
  const path = join(graph.root, from)
  if (!existsSync(path)) {
    throw new ToolError('MODULE_MISSING', `${from} is not there. Run \`npm run build\`, then repeat the command.`)
  }
  // Maps lead to sources, which are not part of the package.
  const compiled = sourceOf(from, graph.root).replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n')
  const to = placeOf(from, graph)
  const lines = compiled.split('\n')
  const reached = workersOf(from, compiled)
  for (const { specifier, line } of scanImports(compiled)) {
    const target = specifier === undefined ? undefined : targetOf(specifier, from, graph)
    if (specifier === undefined || target === undefined) continue
    reached.push(target)
    const relative = posix.relative(posix.dirname(to), placeOf(target, graph)).replace(/\.d\.ts$/, '.js')
    const written = relative.startsWith('.') ? relative : `./${relative}`
    lines[line - 1] = lines[line - 1]!.replace(/(['"])([^'"]+)\1/g, (quoted, mark: string, text: string) =>
      text === specifier ? `${mark}${written}${mark}` : quoted,
    )
  }
  return { module: { from, to, text: lines.join('\n') }, reached }
}

/** The text of a compiled module, with what only the package needs: Lua scripts inside, comments on inferred types. */
function sourceOf(from: string, root: string): string {
  if (from === luaFilesModule) return inlineLuaFiles(join(root, 'packages/store-redis/lua'))
  const text = readFileSync(join(root, from), 'utf8')
  const isContractType = from.startsWith('packages/contract/') && from.endsWith('.d.ts')
  return isContractType ? documentedTypes(text, compiledContract(root)) : text
}

/** The facade's own files are the entries; each other package has a folder. */
function placeOf(from: string, { facade, workspace }: Graph): string {
  const owner = ownerOf(from, workspace)
  const inside = from.slice(`${owner.folder}/dist/`.length)
  return owner.id === facade.id ? `dist/${inside}` : `dist/packages/${owner.id}/${inside}`
}

function ownerOf(path: string, workspace: readonly WorkspacePackage[]): WorkspacePackage {
  const owner = workspace.find(({ folder }) => path.startsWith(`${folder}/dist/`))
  if (owner === undefined) {
    throw new ToolError('MODULE_MISSING', `${path} is in no dist folder of a package of this workspace.`)
  }
  return owner
}

/** The compiled file that a specifier means; undefined for what is not part of this workspace. */
function targetOf(specifier: string, from: string, { workspace }: Graph): string | undefined {
  const isTypes = from.endsWith('.d.ts')
  if (specifier.startsWith('.')) {
    const path = posix.join(posix.dirname(from), specifier)
    return isTypes ? path.replace(/\.[jt]s$/, '.d.ts') : path
  }
  if (specifier.startsWith('node:')) return undefined
  const [, name, entry] = /^((?:@[^/]+\/)?[^/]+)(.*)$/.exec(specifier)!
  const target = workspace.find(({ manifest }) => manifest.name === name)
  if (target === undefined) {
    rejectUndeclared(name!, from, ownerOf(from, workspace))
    return undefined
  }
  const conditions = target.manifest.exports?.[`.${entry}`]
  if (conditions === undefined || typeof conditions === 'string') {
    throw new ToolError('MODULE_MISSING', `${from} imports '${specifier}', which ${target.folder} does not export.`)
  }
  return posix.join(target.folder, conditions[isTypes ? 'types' : 'default']!)
}

function rejectUndeclared(name: string, from: string, { folder, manifest }: WorkspacePackage): void {
  if (Object.hasOwn({ ...manifest.dependencies, ...manifest.peerDependencies }, name)) return
  throw new ToolError(
    'UNDECLARED_DEPENDENCY',
    `${from} imports '${name}', which an installed package would not find. Name it in the dependencies or ` +
      `peerDependencies of ${folder}/package.json.`,
  )
}

/** Files that this one starts as threads: `new URL('./worker.js', import.meta.url)`, the extension perhaps computed. */
export function workersOf(from: string, code: string): string[] {
  if (!from.endsWith('.js')) return []
  return [...code.matchAll(/new URL\(([^,()]*), import\.meta\.url\)/g)].map(([whole, argument]) => {
    const path = /^['"`](\.[\w./-]+)\.(?:js|\$\{\w+\})['"`]$/.exec(argument!)?.[1]
    if (path !== undefined) return `${posix.join(posix.dirname(from), path)}.js`
    throw new ToolError(
      'WORKER_UNCLEAR',
      `${from} has \`${whole}\`, which does not tell the file it means. Write it as new URL('./name.js', ` +
        'import.meta.url).',
    )
  })
}
