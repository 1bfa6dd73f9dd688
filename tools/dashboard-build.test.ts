import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { buildDashboard, isBuilt } from './dashboard-build.ts'

/** A repository with these files, by the second in which they were changed. */
function repository(files: Readonly<Record<string, number>>): string {
  const root = mkdtempSync(join(tmpdir(), 'sluice-build-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const [name, second] of Object.entries(files)) {
    const path = join(root, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, '')
    utimesSync(path, second, second)
  }
  return root
}

const BUILT = 'apps/dashboard/dist/index.html'

it.each([
  ['was never built', { 'apps/dashboard/src/main.tsx': 1 }, false],
  ['is newer than its sources', { [BUILT]: 2, 'apps/dashboard/src/main.tsx': 1, 'packages/core/src/a/b.ts': 2 }, true],
  ['is older than the page', { [BUILT]: 2, 'apps/dashboard/src/pages/a.tsx': 3 }, false],
  ['is older than a package in it', { [BUILT]: 2, 'packages/contract/src/a/b.ts': 3 }, false],
  ['is older than what is not in it', { [BUILT]: 2, 'packages/runtime/src/a.ts': 3 }, true],
])('knows whether a dashboard that %s can be used', (_, files, isUsable) => {
  expect(isBuilt(repository(files))).toBe(isUsable)
})

it('is built in a fresh clone, where no package is compiled', { timeout: 180_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-build-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const noCompiled = `import { registerHooks } from 'node:module'
    registerHooks({
      resolve(specifier, context, next) {
        const found = next(specifier, context)
        if (/\\/packages\\/[^/]+\\/dist\\//.test(found.url)) throw new Error('compiled: ' + found.url)
        return found
      },
    })`
  await buildDashboard(folder, ['--import', `data:text/javascript,${encodeURIComponent(noCompiled)}`])
  expect(readdirSync(folder)).toContain('index.html')
})
