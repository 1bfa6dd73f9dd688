import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Manifest } from './workspace.ts'
import { readJson, repositoryRoot } from './workspace.ts'

const DOCUMENT = readFileSync(join(repositoryRoot, 'docs/reference/compatibility.md'), 'utf8')

/** The cells of a table, by the heading before it, without the head of the table. */
function tableOf(heading: string): string[][] {
  const section = DOCUMENT.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| '))
  return rows.slice(1).map((row) =>
    row
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  )
}

describe('what the reference says of frameworks', () => {
  /** Versions that the tests of the middleware run with, oldest first: see vitest.config.ts. */
  function testedVersions(name: string): string[] {
    const places = ['tools/frameworks/oldest', 'tools/frameworks/nest-11', 'packages/middleware']
    return places.flatMap((folder) => {
      const { dependencies, devDependencies } = readJson<Manifest>(join(repositoryRoot, folder, 'package.json'))
      return dependencies?.[name] ?? devDependencies?.[name] ?? []
    })
  }

  it('are the versions that they are tested with', () => {
    const packages = ['express', 'fastify', 'hono', 'koa', '@nestjs/core']
    expect(tableOf('Frameworks').map(([, versions]) => versions)).toEqual(
      packages.map((name) => testedVersions(name).join(', ')),
    )
  })
})
