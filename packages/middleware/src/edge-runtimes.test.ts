import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

/** What a module and the modules beside it import when they run, other than each other. */
function importedBy(url: URL, visited = new Set<string>()): Set<string> {
  const found = new Set<string>()
  if (visited.has(url.href)) return found
  visited.add(url.href)
  for (const [, specifier] of readFileSync(url, 'utf8').matchAll(
    /^(?:import|export) (?:(?:\{[^}]*\}|\* as \w+) from )?'([^']+)'/gm,
  )) {
    if (!specifier!.startsWith('.')) found.add(specifier!)
    else for (const further of importedBy(new URL(specifier!, url), visited)) found.add(further)
  }
  return found
}

it.each(['adapters/fetch/fetch.ts', 'adapters/hono/hono.ts'])(
  '%s runs where there is no Node, and brings no framework',
  (entry) => {
    const imported = importedBy(new URL(entry, import.meta.url))
    expect([...imported].toSorted()).toEqual([
      '@sluice/contract',
      '@sluice/core',
      '@sluice/core/internal',
      '@sluice/core/options',
      '@sluice/core/store',
    ])
  },
)

it('finds what is imported', () => {
  expect(importedBy(new URL('adapters/nest/nest.ts', import.meta.url))).toContain('@nestjs/common')
})
