import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { schemaFile } from './schema-file.ts'
import { stagedDocuments } from './staged-documents.ts'
import type { StagedManifest } from './staged-manifest.ts'
import { stagedManifest } from './staged-manifest.ts'
import { stagedModules } from './staged-modules.ts'
import { ToolError } from './tool-error.ts'
import { readWorkspace } from './workspace.ts'

/** Where to find the workspace and where to put the package. */
export interface StagePlan {
  /** The repository, its packages compiled. */
  readonly root: string
  /** Emptied first. */
  readonly folder: string
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
export function stagePackage({ root, folder }: StagePlan): StagedManifest {
  const workspace = readWorkspace(root)
  const facade = workspace.find(({ id }) => id === 'sluice')
  if (facade === undefined) throw new ToolError('PACKAGE_MISSING', `${root} has no packages/sluice.`)
  const { modules, packages } = stagedModules({ root, facade, workspace })
  const manifest = stagedManifest(facade, packages)

  rmSync(folder, { recursive: true, force: true })
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  for (const { to, text } of modules) write(to, text)
  write('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
  for (const { to, text } of stagedDocuments(root, `${facade.folder}/README.md`)) write(to, text)
  copyFileSync(join(root, schemaFile), join(folder, 'sluice.schema.json'))
  for (const document of ['LICENSE', 'CHANGELOG.md']) copyFileSync(join(root, document), join(folder, document))
  return manifest
}

/**
 * Joins the modules of a staged package, so that an entry is imported from a few files and not from hundreds.
 *
 * @throws ToolError `BUILD_FAILED`
 */
export function joinModules(folder: string): void {
  const program = join(import.meta.dirname, 'join-modules.ts')
  const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, program, folder], { encoding: 'utf8' })
  if (status !== 0) throw new ToolError('BUILD_FAILED', `The modules cannot be joined.\n${stdout}${stderr}`)
}
