import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Manifest } from './workspace.ts'
import { readWorkspace, repositoryRoot } from './workspace.ts'

const workspace = readWorkspace(repositoryRoot)
const facade = workspace.find(({ id }) => id === 'sluice')!

const LIST = /^export (type )?\{([^}]*)\}/gm
const VALUE = /^export (?:abstract )?(?:async )?(?:function\*?|class|const|let) (\w+)/gm
const TYPE = /^export (?:interface|type) (\w+)/gm

/**
 * The names that a module exports, in lists or where they are made, with `type` before those that are types only,
 * sorted.
 */
function namesExportedBy(code: string): string[] {
  const listed = [...code.matchAll(LIST)].flatMap(([, allTypes, list]) =>
    list!
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
      .map((name) => (allTypes === undefined || name.startsWith('type ') ? name : `type ${name}`)),
  )
  const values = [...code.matchAll(VALUE)].map(([, name]) => name!)
  const types = [...code.matchAll(TYPE)].map(([, name]) => `type ${name}`)
  return [...new Set([...listed, ...values, ...types])].sort()
}

function sourceOf(target: NonNullable<Manifest['exports']>[string] | undefined): string {
  return typeof target === 'object' ? (target['source'] ?? '') : ''
}

function read(folder: string, path: string): string {
  return readFileSync(join(repositoryRoot, folder, path), 'utf8')
}

describe('what the package offers', () => {
  it('has an entry for each part that users need', () => {
    expect(Object.keys(facade.manifest.exports ?? {})).toEqual([
      ...['.', './limiter', './policy', './store', './redis', './config'],
      ...['./express', './express-rate-limit', './fastify', './hono', './koa', './nest', './fetch', './middleware'],
      ...['./client', './runtime', './testing', './testing/servers'],
    ])
  })

  const entries = Object.entries(facade.manifest.exports ?? {}).map(([name, target]) => {
    const entry = read(facade.folder, sourceOf(target))
    const [, part, subpath] = /\} from '(@sluice\/[^/']+)([^']*)'$/m.exec(entry) ?? []
    const { folder, manifest } = workspace.find((item) => item.manifest.name === part)!
    const offered = namesExportedBy(read(folder, sourceOf(manifest.exports?.[`.${subpath}`])))
    return { name, names: namesExportedBy(entry), offered }
  })

  it.each(entries.filter(({ name }) => name !== './runtime'))('$name is all that its part offers', (entry) => {
    expect(entry.names).not.toEqual([])
    expect(entry.names).toEqual(entry.offered)
  })

  it('./runtime is a selection of the parts of a process', () => {
    const { names, offered } = entries.find(({ name }) => name === './runtime')!
    expect(names.length).toBeGreaterThan(20)
    expect(offered).toEqual(expect.arrayContaining(names))
  })

  it.each([
    ['.', 'docs/reference/library.md', '## All names of `sluice`'],
    ['./policy', 'docs/reference/library.md', '## `sluice/policy`'],
    ['./store', 'docs/reference/store.md', '## All names of `sluice/store`'],
  ])('%s has the names that %s lists', (name, document, heading) => {
    const [, section] = read('.', document).split(`${heading}\n`)
    const { names } = entries.find((entry) => entry.name === name)!
    expect(namesListedIn(section!.split('\n## ')[0]!)).toEqual(names)
  })
})

/** The names of a section: values in a list or in the first column of its table, types in a list; as above, sorted. */
function namesListedIn(section: string): string[] {
  const listed = (label: string): string[] => {
    const paragraph = section.split(/\n\n|^\n/).find((text) => text.startsWith(`${label}: `)) ?? ''
    return [...paragraph.matchAll(/`(\w+)`/g)].map(([, name]) => name!)
  }
  const firstCells = [...section.matchAll(/^\| (`.*?) \|/gm)].map(([, cell]) => cell!)
  const inTable = firstCells.flatMap((cell) => [...cell.matchAll(/`(\w+)[^`]*`/g)].map(([, name]) => name!))
  return [...new Set([...listed('Values'), ...inTable, ...listed('Types').map((name) => `type ${name}`)])].sort()
}

describe('namesExportedBy', () => {
  it('reads lists and declarations', () => {
    const code = [
      "export { a, type B } from './a.ts'\nexport type {\n  C,\n  D,\n} from './c.ts'",
      'export function e(): void\nexport function e(x?: number): void {}\nexport async function* f() {}',
      'export interface G {}\nexport type H = 1\nexport const i = 1\nexport abstract class J {}\nconst k = 1',
    ].join('\n')
    expect(namesExportedBy(code)).toEqual([
      ...['J', 'a', 'e', 'f', 'i'],
      ...['type B', 'type C', 'type D', 'type G', 'type H'],
    ])
  })
})
