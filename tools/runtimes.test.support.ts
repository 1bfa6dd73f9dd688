import { execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { stagePackage } from './stage-package.ts'
import { repositoryRoot } from './workspace.ts'

const run = promisify(execFile)

/** A runtime that programs are started on. */
export interface Runtime {
  readonly command: string
  /** What stands before the path of a program. */
  readonly args: readonly string[]
}

const folder = join(repositoryRoot, 'tools/runtimes')
const modules = join(folder, 'node_modules')
const isArm = process.arch === 'arm64'

/** Beside the Node that runs the tests. */
export const RUNTIMES: Readonly<Record<'Node 22' | 'Bun' | 'Deno', Runtime>> = {
  'Node 22': { command: join(modules, `node-linux-${process.arch}/bin/node`), args: [] },
  Bun: { command: join(modules, `@oven/bun-linux-${isArm ? 'aarch64' : 'x64'}/bin/bun`), args: [] },
  Deno: {
    command: join(modules, `@deno/linux-${process.arch}-glibc/deno`),
    args: ['run', '--allow-all', '--no-lock', '--quiet'],
  },
}

/**
 * Installs the runtimes where they are missing. They are no dependencies of the workspace: together they have 380 MB,
 * and only one test file needs them. npm keeps the files in its cache, so a second checkout takes seconds.
 */
export async function installRuntimes(): Promise<void> {
  if (Object.values(RUNTIMES).every(({ command }) => existsSync(command))) return
  await run('npm', ['ci', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'], { cwd: folder })
}

/** Bundles test files for a runtime. */
export async function bundleTests(bundle: string, kind: 'node' | 'native' | 'worker', tests: readonly string[]) {
  const program = join(repositoryRoot, 'tools/bundle-runtime-tests.ts')
  const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
  await run(process.execPath, [...flags, program, bundle, kind, ...tests])
}

/** What a program prints. Its complaints are left out: Deno prints advice there. */
export async function outputOf({ command, args }: Runtime, program: string, env = {}) {
  const { stdout } = await run(command, [...args, program], { cwd: dirname(program), env: { ...process.env, ...env } })
  return stdout
}

/** Puts the package that users install into a project, as `npm run pack` stages it. */
export async function addPackage(project: string): Promise<void> {
  const compiler = join(repositoryRoot, 'node_modules/typescript/bin/tsc')
  await run(process.execPath, [compiler, '-b', 'packages/sluice'], { cwd: repositoryRoot })
  mkdirSync(join(project, 'node_modules'), { recursive: true })
  stagePackage({ root: repositoryRoot, folder: join(project, 'node_modules/sluice') })
}
