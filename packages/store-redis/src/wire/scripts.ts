import { hash } from 'node:crypto'
import { readLuaFile } from './lua-files.ts'

/** A Lua script, and the digest by which the server identifies it. */
export interface Script {
  readonly name: string
  readonly body: string
  readonly digest: string
}

const INCLUDE = /^-- @include (.+)$/

/**
 * Reads a script of `lua/`. A line `-- @include x` is replaced by `lua/includes/x.lua`, once per script. Comments and
 * indentation are dropped: the server does not need them.
 *
 * @param read - reads a file of `lua/` by its path without extension
 */
export function loadScript(name: string, read: (path: string) => string = readLuaFile): Script {
  const included = new Set<string>()
  const linesOf = (path: string): string[] =>
    read(path)
      .split('\n')
      .flatMap((line) => {
        const text = line.trim()
        const part = INCLUDE.exec(text)?.[1]
        if (part === undefined) return text === '' || text.startsWith('--') ? [] : [text]
        if (included.has(part)) return []
        included.add(part)
        return linesOf(`includes/${part}`)
      })
  const body = linesOf(name).join('\n')
  return scriptOf(name, body)
}

/** A script with this body. */
export function scriptOf(name: string, body: string): Script {
  return { name, body, digest: hash('sha1', body) }
}

export const DECIDE: Script = loadScript('decide')
export const SETTLE: Script = loadScript('settle')
export const BLOCK_OR_RESET: Script = loadScript('block-or-reset')
export const SCAN_KEYS: Script = loadScript('scan-keys')
export const HEARTBEAT: Script = loadScript('heartbeat')
export const PROBE_COMMANDS: Script = loadScript('probe-commands')
