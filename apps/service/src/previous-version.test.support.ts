import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** The commit of the version before this one: what nodes run that were not upgraded yet. Set it with each release. */
const PREVIOUS_COMMIT = '8dd828d019be9eab2c8fd2450705c385cd13a638'

const ROOT = resolve(import.meta.dirname, '../../..')

/** Whether the sources of the previous version can be had. A shallow clone does not have them. */
export function hasPreviousVersion(): boolean {
  return spawnSync('git', ['cat-file', '-e', `${PREVIOUS_COMMIT}^{commit}`], { cwd: ROOT }).status === 0
}

/**
 * Puts the sources of the previous version into a new folder below `parent`, and gives the path of its service. It runs
 * with the packages that are installed here, and with its own version of every package of this workspace.
 */
export function checkOutPreviousVersion(parent: string): string {
  const folder = mkdtempSync(join(parent, 'previous-'))
  const archive = join(folder, 'sources.tar')
  run(
    'git',
    ['archive', '--format=tar', `--output=${archive}`, PREVIOUS_COMMIT, 'packages', 'apps', 'package.json'],
    ROOT,
  )
  run('tar', ['-xf', archive], folder)
  linkModules('node_modules', folder)
  linkModules('apps/service/node_modules', folder)
  return join(folder, 'apps/service/src/main.ts')
}

/**
 * Links what is installed: packages of the workspace to those in `folder`, by their relative links, all others to here.
 */
function linkModules(path: string, folder: string): void {
  const from = join(ROOT, path)
  mkdirSync(join(folder, path), { recursive: true })
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const target = join(folder, path, entry.name)
    if (entry.isSymbolicLink()) symlinkSync(readlinkSync(join(from, entry.name)), target)
    else if (entry.name.startsWith('@')) linkModules(join(path, entry.name), folder)
    else symlinkSync(join(from, entry.name), target)
  }
}

function run(command: string, args: readonly string[], cwd: string): void {
  const { status, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} in ${dirname(cwd)} ended with ${status}: ${stderr}`)
}
