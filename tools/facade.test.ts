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

it.each([
  ['createLimiter', 'core', 'index.ts'],
  ['redisStore', 'store-redis', 'redis.ts'],
  ['openConfigStore', 'config-store', 'config.ts'],
])('lets users of sluice have everything that goes with %s', (name, from, file) => {
  const offered = namesListedIn(`packages/${from}/src/index.ts`)
  expect(offered).toContain(name)
  expect(namesListedIn(`packages/sluice/src/${file}`)).toEqual(offered)
})
