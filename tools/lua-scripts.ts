import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ToolError } from './tool-error.ts'

const INCLUDE = /^\s*-- @include (.+)$/

/**
 * The TypeScript module that carries the Lua scripts of a folder: files named `<what>-<keys>.lua`, each with the parts of
 * `includes/` that it names put in place, once. Every part is a constant that scripts insert, so the module has it once,
 * and the compiler finds one that no script names. Comments and indentation are left out: the server gets what it needs,
 * the files have what readers need.
 *
 * @throws ToolError `LUA_INCLUDE_UNKNOWN` when a script names a part that is not there
 */
export function renderScripts(folder: string): string {
  const parts = luaFiles(join(folder, 'includes'))
  return [
    '// Made from lua/*.lua by `npm run scripts`; a test compares them. Change those files, not this one.',
    '',
    ...parts.map((name) => {
      const lines = readLines(join(folder, 'includes', name)).flatMap(asTemplateLines)
      return `/** \`lua/includes/${name}\` */\nconst ${constantOf(name)} = \`${lines.join('\n')}\`\n`
    }),
    ...luaFiles(folder).map((name) => {
      const constant = constantOf(name.replace(/-\w+\.lua$/, '.lua'))
      return `/** \`lua/${name}\` */\nexport const ${constant}_SCRIPT: string = \`${assemble(folder, name, parts)}\`\n`
    }),
  ].join('\n')
}

/** A script as the inside of a template literal. */
function assemble(folder: string, name: string, parts: readonly string[]): string {
  const included = new Set<string>()
  return readLines(join(folder, name))
    .flatMap((line) => {
      const part = INCLUDE.exec(line)?.[1]
      if (part === undefined) return asTemplateLines(line)
      if (included.has(part)) return []
      included.add(part)
      if (parts.includes(`${part}.lua`)) return [`\${${constantOf(`${part}.lua`)}}`]
      const missing = join(folder, 'includes', `${part}.lua`)
      throw new ToolError('LUA_INCLUDE_UNKNOWN', `${name} includes '${part}', and there is no ${missing}`)
    })
    .join('\n')
}

/** A line of Lua as it stands in a template literal; none when it says nothing to the server. */
function asTemplateLines(line: string): string[] {
  const text = line.trim()
  if (text === '' || text.startsWith('--')) return []
  return [text.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')]
}

function constantOf(file: string): string {
  return file
    .replace(/\.lua$/, '')
    .replaceAll('-', '_')
    .toUpperCase()
}

function luaFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.lua'))
    .toSorted()
}

function readLines(path: string): string[] {
  return readFileSync(path, 'utf8').split('\n')
}
