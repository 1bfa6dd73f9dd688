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
      ...['.', './redis', './config'],
      ...['./express', './express-rate-limit', './fastify', './hono', './koa', './nest', './fetch', './middleware'],
      ...['./client', './testing', './testing/servers'],
    ])
  })

  it.each(Object.entries(facade.manifest.exports ?? {}))('%s is everything that its part offers', (_, target) => {
    const entry = read(facade.folder, sourceOf(target))
    const [, name, subpath] = /\} from '(@sluice\/[^/']+)([^']*)'$/m.exec(entry) ?? []
    const part = workspace.find(({ manifest }) => manifest.name === name)!
    const offered = namesExportedBy(read(part.folder, sourceOf(part.manifest.exports?.[`.${subpath}`])))
    expect(offered).not.toEqual([])
    expect(namesExportedBy(entry)).toEqual(offered)
  })
})

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
