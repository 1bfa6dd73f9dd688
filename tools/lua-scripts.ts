import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ToolError } from './tool-error.ts'

const INCLUDE = /^\s*-- @include (.+)$/

/**
 * The TypeScript module that carries the Lua scripts of a folder: files named `<what>-<keys>.lua`, each with the parts of
 * `includes/` that it names put in place, once. Comments and indentation are left out: the server gets what it needs, the
 * files have what readers need.
 *
 * @throws ToolError `LUA_INCLUDE_UNKNOWN` when a script names a part that is not there
 */
export function renderScripts(folder: string): string {
  const names = readdirSync(folder).filter((name) => name.endsWith('.lua'))
  const parts = names.toSorted().map((name) => {
    const constant = name
      .replace(/-\w+\.lua$/, '')
      .replaceAll('-', '_')
      .toUpperCase()
    return `/** \`lua/${name}\` */\nexport const ${constant}_SCRIPT: string = \`${asTemplate(assemble(folder, name))}\`\n`
  })
  return [
    '// Made from lua/*.lua by `npm run scripts`; a test compares them. Change those files, not this one.',
    '',
    ...parts,
  ].join('\n')
}

function assemble(folder: string, name: string): string {
  const included = new Set<string>()
  const lines = readFileSync(join(folder, name), 'utf8').split('\n')
  return lines
    .flatMap((line) => {
      const part = INCLUDE.exec(line)?.[1]
      if (part === undefined) return [line]
      if (included.has(part)) return []
      included.add(part)
      return readPart(folder, name, part)
    })
    .filter((line) => !/^\s*--/.test(line) && line.trim() !== '')
    .map((line) => line.trim())
    .join('\n')
}

function readPart(folder: string, name: string, part: string): string[] {
  const path = join(folder, 'includes', `${part}.lua`)
  if (!existsSync(path))
    throw new ToolError('LUA_INCLUDE_UNKNOWN', `${name} includes '${part}', and there is no ${path}`)
  return readFileSync(path, 'utf8').split('\n')
}

function asTemplate(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')
}
