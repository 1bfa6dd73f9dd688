import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** What .gitignore leaves out, and git itself. */
const IGNORED_FOLDERS = new Set(['.git', 'node_modules', 'dist', 'coverage', '.sluice', '.install-lock'])
const IGNORED_SUFFIX = '.tsbuildinfo'

/**
 * Paths of every file below `folder` that belongs to the repository, relative to `root`, with forward slashes, sorted.
 * Works without git, so that an unpacked archive can be checked too. A folder that does not exist has no files.
 */
export function repositoryFiles(root: string, folder = ''): string[] {
  return entriesOf(join(root, folder))
    .flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.isDirectory()) return IGNORED_FOLDERS.has(entry.name) ? [] : repositoryFiles(root, path)
      return entry.isFile() && !entry.name.endsWith(IGNORED_SUFFIX) ? [path] : []
    })
    .sort()
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
