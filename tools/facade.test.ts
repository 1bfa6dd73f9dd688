import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { repositoryRoot } from './workspace.ts'

/** The names that an index file lists, with `type` before those that are types only, sorted. */
function namesListedIn(path: string): string[] {
  const text = readFileSync(join(repositoryRoot, path), 'utf8')
  return [...text.matchAll(/^export (type )?\{([^}]*)\}/gm)]
    .flatMap(([, allTypes, list]) =>
      list!
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '')
        .map((name) => (allTypes === undefined || name.startsWith('type ') ? name : `type ${name}`)),
    )
    .sort()
}

it('lets users of sluice have everything that the core offers', () => {
  const core = namesListedIn('packages/core/src/index.ts')
  expect(core).toContain('createLimiter')
  expect(namesListedIn('packages/sluice/src/index.ts')).toEqual(core)
})
