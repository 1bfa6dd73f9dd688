import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { PackFile } from './pack-file.ts'
import { packFile } from './pack-file.ts'
import { completePackage, stagePackage } from './stage-package.ts'
import type { StagedManifest } from './staged-manifest.ts'
import { readWorkspace, repositoryRoot } from './workspace.ts'

/**
 * The package, packed from the sources as they are now, and projects outside of the repository that have installed it.
 */
export interface PackageProjects {
  readonly manifest: StagedManifest
  readonly pack: PackFile
  /** A project of nothing but the package and its dependencies. */
  readonly bare: string
  /** A project that has everything else too that the packages of this workspace are tested with. */
  readonly full: string
  /** Removes it all. */
  readonly remove: () => void
}

/** Compiles, packs and installs. Asks no registry: the dependencies are those of the workspace. */
export function makePackageProjects(): PackageProjects {
  const base = mkdtempSync(join(tmpdir(), 'sluice-package-'))
  const remove = (): void => rmSync(base, { recursive: true, force: true })
  try {
    return { ...installed(base), remove }
  } catch (error) {
    remove()
    throw error
  }
}

function installed(base: string): Omit<PackageProjects, 'remove'> {
  const bare = join(base, 'bare')
  const full = join(base, 'full')
  // The same as `npm run build` leaves, and next to nothing when the types have just been checked.
  runOrFail(process.execPath, [join(repositoryRoot, 'node_modules/typescript/bin/tsc'), '-b', 'packages/sluice'], {
    cwd: repositoryRoot,
  })
  const manifest = stagePackage({ root: repositoryRoot, folder: join(base, 'staged') })
  completePackage(join(base, 'staged'))
  const pack = packFile(join(base, 'staged'), base)

  mkdirSync(bare)
  writeFileSync(join(bare, 'package.json'), JSON.stringify({ name: 'bare', private: true, type: 'module' }))
  const flags = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund']
  const dependencies = Object.keys(manifest.dependencies ?? {}).map((name) => workspaceCopy(name))
  runOrFail('npm', ['install', ...flags, pack.path, ...dependencies], { cwd: bare })

  cpSync(bare, full, { recursive: true, verbatimSymlinks: true })
  for (const name of companions(manifest)) {
    const link = join(full, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(workspaceCopy(name), link)
  }
  return { manifest, pack, bare, full }
}

/** A folder of a project for the files of one test; gone when that ends. */
export function testFolder(project: string): string {
  const folder = mkdtempSync(join(project, 'test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Peers of the package, and what its parts are developed with: frameworks, Redis clients, types. */
function companions({ peerDependencies, dependencies }: StagedManifest): string[] {
  const developedWith = readWorkspace(repositoryRoot)
    .filter(({ folder }) => folder.startsWith('packages/'))
    .flatMap(({ manifest }) => Object.keys(manifest.devDependencies ?? {}))
  return [...new Set([...Object.keys(peerDependencies ?? {}), ...developedWith, '@types/node'])].filter(
    (name) => !name.startsWith('@sluice/') && !Object.hasOwn(dependencies ?? {}, name),
  )
}

/** The folder of a package from npm that this workspace has installed. */
export function workspaceCopy(name: string): string {
  const places = [repositoryRoot, ...readWorkspace(repositoryRoot).map(({ folder }) => join(repositoryRoot, folder))]
  const found = places.map((place) => join(place, 'node_modules', name)).find((path) => existsSync(path))
  if (found === undefined) throw new Error(`${name} is not installed in the workspace; run npm ci`)
  return found
}

function runOrFail(command: string, args: readonly string[], { cwd }: { readonly cwd: string }): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}: ${error}${stdout}${stderr}`)
}
