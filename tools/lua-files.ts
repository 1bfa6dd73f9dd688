import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The compiled module of the Redis store that reads the Lua files. See packages/store-redis/src/wire/lua-files.ts. */
export const luaFilesModule = 'packages/store-redis/dist/wire/lua-files.js'

/**
 * The module that takes the place of {@link luaFilesModule} in the published package: it contains the files of a Lua
 * folder instead of reading them. Comments and indentation are dropped, apart from `-- @include` lines.
 */
export function inlineLuaFiles(folder: string): string {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.lua'))
    .toSorted()
  const files = paths.map((path) => [path.replaceAll('\\', '/').slice(0, -'.lua'.length), codeOf(join(folder, path))])
  return (
    `const FILES = ${JSON.stringify(Object.fromEntries(files), null, 2)}\n\nexport function readLuaFile(path) ` +
    '{\n  return FILES[path]\n}\n'
  )
}

function codeOf(path: string): string {
  return readFileSync(path, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && (!line.startsWith('--') || line.startsWith('-- @include ')))
    .join('\n')
}
