import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, '../../lua')

/**
 * The text of a file of `lua/`, by its path without extension. In the published package, tools/lua-files.ts replaces
 * this module by one that contains the files.
 */
export function readLuaFile(path: string): string {
  return readFileSync(join(FOLDER, `${path}.lua`), 'utf8')
}
