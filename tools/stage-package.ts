import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { schemaFile } from './schema-file.ts'
import { stagedDocuments } from './staged-documents.ts'
import type { StagedManifest } from './staged-manifest.ts'
import { commonJsEntries, stagedManifest } from './staged-manifest.ts'
import { stagedModules } from './staged-modules.ts'
import { ToolError } from './tool-error.ts'
import { readJson, readWorkspace } from './workspace.ts'

/** Where to find the workspace and where to put the package. */
export interface StagePlan {
  /** The repository, its packages compiled. */
  readonly root: string
  /** Emptied first. */
  readonly folder: string
  /** URL of the repository, see `repositoryUrl`. Default: the one of package.json, if any. */
  readonly repository?: string | undefined
}

/**
 * Puts the one package that users install together: the entries of `packages/sluice` and, inside it, every module of
 * the workspace that they reach. It depends on no other package of the workspace, so `npm pack` makes a file of it that
 * installs anywhere. One copy of each module serves all entries, so a store made by one is understood by the others.
 *
 * @returns its package.json
 * @throws ToolError when something is not compiled or not declared, see {@link stagedModules} and {@link
 * stagedManifest}
 */
export function stagePackage({ root, folder, ...plan }: StagePlan): StagedManifest {
  const workspace = readWorkspace(root)
  const facade = workspace.find(({ id }) => id === 'sluice')
  if (facade === undefined) throw new ToolError('PACKAGE_MISSING', `${root} has no packages/sluice.`)
  const { modules, packages } = stagedModules({ root, facade, workspace })
  const inWorkspace = readJson<{ readonly repository?: object }>(join(root, 'package.json')).repository
  const repository = plan.repository === undefined ? inWorkspace : { type: 'git', url: plan.repository }
  // npm compares it with where the package was built, for provenance.
  const manifest = { ...stagedManifest(facade, packages), ...(repository === undefined ? {} : { repository }) }

  rmSync(folder, { recursive: true, force: true })
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  for (const { to, text } of modules) write(to, text)
  for (const { module, commonJsTypes } of commonJsEntries(facade.manifest.exports ?? {})) {
    write(commonJsTypes, commonJsTypesOf(commonJsTypes, module))
  }
  write('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
  for (const { to, text } of stagedDocuments(root, `${facade.folder}/README.md`)) write(to, text)
  copyFileSync(join(root, schemaFile), join(folder, 'sluice.schema.json'))
  for (const document of ['LICENSE', 'CHANGELOG.md']) copyFileSync(join(root, document), join(folder, document))
  write('bin/sluice.mjs', readFileSync(join(root, 'apps/cli/bin/sluice.mjs'), 'utf8'))
  return manifest
}

/**
 * The types of a CommonJS entry are those of the ES module. Compilers that resolve the `node16` way do not let CommonJS
 * name an ES module, which is right for code and does not matter for types.
 */
function commonJsTypesOf(from: string, module: string): string {
  return `// @ts-ignore\nexport * from '${posix.relative(posix.dirname(from), module)}';\n`
}

/**
 * Completes a staged package: joins its modules, so that an entry is imported from a few files and not from hundreds,
 * and adds the programs behind the `sluice` command.
 *
 * @throws ToolError `BUILD_FAILED`
 */
export function completePackage(folder: string): void {
  const programs = [
    ['join-modules.ts', folder],
    ['bundle-service.ts', folder, 'cli', 'harness'],
  ] as const
  for (const [name, ...args] of programs) {
    const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
    const program = [...flags, join(import.meta.dirname, name), ...args]
    const { status, stdout, stderr } = spawnSync(process.execPath, program, { encoding: 'utf8' })
    if (status !== 0) throw new ToolError('BUILD_FAILED', `The package cannot be completed.\n${stdout}${stderr}`)
  }
}
