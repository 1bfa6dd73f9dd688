import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Absolute path of the repository. */
export const repositoryRoot: string = fileURLToPath(new URL('..', import.meta.url)).replace(/[/\\]$/, '')

/** The parts of a package.json that the checks look at. */
export interface Manifest {
  readonly name?: string
  readonly version?: string
  readonly description?: string
  readonly license?: string
  readonly type?: string
  readonly private?: boolean
  readonly sideEffects?: boolean
  readonly files?: readonly string[]
  readonly engines?: Readonly<Record<string, string>>
  readonly exports?: Readonly<Record<string, Readonly<Record<string, string>> | string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/** The parts of a tsconfig.json that the checks look at. */
export interface TypeScriptProject {
  readonly extends?: string
  readonly references?: readonly { readonly path: string }[]
}

/** One package of the workspace. */
export interface WorkspacePackage {
  /** Last part of its folder: the name that the import table uses. */
  readonly id: string
  /** Folder, relative to the repository, with forward slashes. */
  readonly folder: string
  readonly manifest: Manifest
  /** Undefined where there is no tsconfig.json. */
  readonly project: TypeScriptProject | undefined
  /** tsconfig.test.json, where the tests are a project of their own because they import more than the sources may. */
  readonly testProject?: TypeScriptProject
}

/** Folders that hold packages, and the folders that are packages themselves: the `workspaces` of package.json. */
const PACKAGE_PARENTS = ['packages', 'apps']
const LONE_PACKAGES = ['bench']

/** Reads every package of the workspace, sorted by folder. A folder without a package.json is not a package. */
export function readWorkspace(root: string): WorkspacePackage[] {
  const nested = PACKAGE_PARENTS.filter((parent) => existsSync(join(root, parent))).flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => `${parent}/${name}`),
  )
  return [...nested, ...LONE_PACKAGES]
    .filter((folder) => existsSync(join(root, folder, 'package.json')))
    .sort()
    .map((folder) => {
      const project = join(root, folder, 'tsconfig.json')
      const testProject = join(root, folder, 'tsconfig.test.json')
      return {
        id: folder.slice(folder.lastIndexOf('/') + 1),
        folder,
        manifest: readJson<Manifest>(join(root, folder, 'package.json')),
        project: existsSync(project) ? readJson<TypeScriptProject>(project) : undefined,
        ...(existsSync(testProject) ? { testProject: readJson<TypeScriptProject>(testProject) } : {}),
      }
    })
}

/** Reads JSON that may carry comments, as tsconfig files do. The caller vouches for the shape. */
export function readJson<T>(path: string): T {
  const text = readFileSync(path, 'utf8')
  const bare = text.replaceAll(
    /("(?:\\.|[^"\\])*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (_all, string?: string) => string ?? '',
  )
  return JSON.parse(bare) as T
}

/** Whether a package is meant for npm. */
export function isPublished(item: WorkspacePackage): boolean {
  return item.manifest.private !== true
}
