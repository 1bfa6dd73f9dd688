import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { inlineLuaFiles } from './lua-files.ts'

/** The function that the module made of these files exports. */
async function inlined(files: Readonly<Record<string, string>>): Promise<(path: string) => string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-lua-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  const path = join(folder, 'lua-files.mjs')
  writeFileSync(path, inlineLuaFiles(folder))
  const module = (await import(pathToFileURL(path).href)) as { readLuaFile: (path: string) => string | undefined }
  return module.readLuaFile
}

describe('the module of inlined Lua files', () => {
  it('has every file by its path, without comments and indentation, but with its includes', async () => {
    const read = await inlined({
      'add.lua': '-- Adds.\nlocal function f()\n  -- @include one\n  last() -- why\nend\n',
      'includes/one.lua': '-- A part.\none()\n',
      'README.md': 'not Lua',
    })
    expect(read('add')).toBe('local function f()\n-- @include one\nlast() -- why\nend')
    expect(read('includes/one')).toBe('one()')
    expect(read('README')).toBeUndefined()
  })

  it('has what means something else in JavaScript as it is in the Lua file', async () => {
    const line = "local odd = '\\0 \\\\ ` ${FLOW} $ \"'"
    expect((await inlined({ 'a.lua': line }))('a')).toBe(line)
  })
})
