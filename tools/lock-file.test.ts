import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readJson, repositoryRoot } from './workspace.ts'

interface LockedPackage {
  readonly version?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

describe('package-lock.json', () => {
  const { packages } = readJson<{ readonly packages: Readonly<Record<string, LockedPackage>> }>(
    join(repositoryRoot, 'package-lock.json'),
  )

  // Some tools are a package per operating system. When a new version of the tool is out before all of these are, npm
  // writes a lock file without the missing ones, and `npm ci` rejects that file everywhere. Then take the version
  // before, by `overrides` in package.json where the tool is a dependency of a dependency.
  it('names the packages of every operating system', () => {
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) =>
          packages[`${path}/node_modules/${name}`] === undefined && packages[`node_modules/${name}`] === undefined,
      ),
    )
    expect(missing).toEqual([])
  })

  it('can tell whether each package arrived as it was published', () => {
    const unproven = Object.entries(packages).filter(
      ([path, { integrity, link }]) => path.startsWith('node_modules/') && !link && integrity === undefined,
    )
    expect(unproven.map(([path]) => path)).toEqual([])
  })
})
