import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { renderScripts } from './lua-scripts.ts'
import { repositoryRoot } from './workspace.ts'

describe('the Lua scripts in the package', () => {
  it('are those of the Lua files; after a change, npm run scripts', () => {
    const store = join(repositoryRoot, 'packages/store-redis')
    expect(readFileSync(join(store, 'src/wire/scripts.ts'), 'utf8')).toBe(renderScripts(join(store, 'lua')))
  })
})

describe('a module of Lua scripts', () => {
  it('has each script with the parts it names in their place, without comments and indentation', async () => {
    const folder = folderOf({
      'add-one-1.lua': '-- Adds.\n-- @include two-lines\n\nlocal function way()\n  -- @include one\n  last()\nend\n',
      'beat-n.lua': 'first()\n-- @include one\n',
      'includes/one.lua': '-- A part.\none()\n',
      'includes/two-lines.lua': 'two()\n  lines() -- why\n',
    })
    expect(await scriptsOf(folder)).toEqual({
      ADD_ONE_SCRIPT: 'two()\nlines() -- why\nlocal function way()\none()\nlast()\nend',
      BEAT_SCRIPT: 'first()\none()',
    })
  })

  it('has a part once, however many scripts share it', () => {
    const folder = folderOf({
      'a-1.lua': '-- @include shared\nlast()\n',
      'b-1.lua': '-- @include shared\nlast()\n',
      'includes/shared.lua': 'only_here()\n',
    })
    expect(renderScripts(folder).split('only_here()')).toHaveLength(2)
  })

  it('puts a part that a script names twice where it is named first', async () => {
    const folder = folderOf({
      'a-1.lua': '-- @include part\nmiddle()\n-- @include part\n',
      'includes/part.lua': 'part()\n',
    })
    expect(await scriptsOf(folder)).toEqual({ A_SCRIPT: 'part()\nmiddle()' })
  })

  it('has what means something else in TypeScript as it stands in the Lua file', async () => {
    const line = "local odd = '\\0 \\\\ ` ${FLOW} $'"
    const folder = folderOf({ 'a-1.lua': `${line}\n-- @include part\n`, 'includes/part.lua': `${line}\n` })
    expect(await scriptsOf(folder)).toEqual({ A_SCRIPT: `${line}\n${line}` })
  })

  it('is not made when a script names a part that is not there', () => {
    const folder = folderOf({ 'a-1.lua': '-- @include gone\n', 'includes/part.lua': 'part()\n' })
    expect(() => renderScripts(folder)).toThrow(
      expect.objectContaining({
        code: 'LUA_INCLUDE_UNKNOWN',
        message: expect.stringContaining("a-1.lua includes 'gone'"),
      }),
    )
  })
})

/** A folder with these files. */
function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-lua-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

/** What the module of a folder exports. */
async function scriptsOf(folder: string): Promise<Record<string, string>> {
  const path = join(folder, 'scripts.ts')
  writeFileSync(path, renderScripts(folder))
  const module = (await import(pathToFileURL(path).href)) as Record<string, string>
  return { ...module }
}
