import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'

const SOURCE = join(import.meta.dirname, '..')

const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).toSorted()
const sheets = files.filter((file) => file.endsWith('.module.css'))

/** The names of the classes of a style sheet. */
function definedIn(sheet: string): Set<string> {
  const text = readFileSync(join(SOURCE, sheet), 'utf8')
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/:global\([^)]*\)/g, '')
  return new Set([...text.matchAll(/\.([a-z][\w-]*)(?=[^{}]*\{)/gi)].map(([, name]) => name!))
}

/** The names that components read from a style sheet; undefined when one of them reads a computed name. */
function usedFrom(sheet: string): Set<string> | undefined {
  const used = new Set<string>()
  for (const file of files.filter((name) => /\.tsx?$/.test(name))) {
    const text = readFileSync(join(SOURCE, file), 'utf8')
    for (const [, own, path] of text.matchAll(/import (\w+) from '([^']+\.module\.css)'/g)) {
      if (normalize(join(dirname(file), path!)) !== sheet) continue
      if (text.includes(`${own}[`)) return undefined
      for (const [, name] of text.matchAll(new RegExp(`\\b${own}\\.(\\w+)`, 'g'))) used.add(name!)
    }
  }
  return used
}

describe.each(sheets)('%s', (sheet) => {
  const used = usedFrom(sheet)

  it('defines every class that a component names', () => {
    const defined = definedIn(sheet)
    expect([...(used ?? [])].filter((name) => !defined.has(name))).toEqual([])
  })

  it('defines no class that no component names', () => {
    expect(used === undefined ? [] : [...definedIn(sheet)].filter((name) => !used.has(name))).toEqual([])
  })

  it('has no colour of its own', () => {
    const text = readFileSync(join(SOURCE, sheet), 'utf8')
    expect([...text.matchAll(/#[\da-f]{3,8}\b|\b(?:hsl|oklch)\(/gi)].map(([found]) => found)).toEqual([])
  })
})
