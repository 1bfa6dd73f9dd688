// What a program with one limiter of `sluice/limiter` carries.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Bundle } from './bundle.ts'
import { addPackage } from './runtimes.test.support.ts'
import { repositoryRoot } from './workspace.ts'

const MOST_PRINTED_BYTES = 64_000_000

/** Words that stand in the code of an algorithm's rules, however it is minified. */
const WORDS = { calendar: 'has an unknown calendar period', log: 'too large for the exact log' }

const PROGRAMS = {
  lean: `import { createLimiter, tokenBucket } from 'sluice/limiter'
    console.log(createLimiter(tokenBucket({ capacity: 1, refillPerSecond: 1 })).tryAcquire('a'))`,
  full: `import { createLimiter, tokenBucket } from 'sluice'
    console.log(createLimiter(tokenBucket({ capacity: 1, refillPerSecond: 1 })).tryAcquire('a'))`,
}

let folder: string
let lean: Bundle
let full: Bundle

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-bundle-'))
  await addPackage(folder)
  const program = join(repositoryRoot, 'tools/bundle-programs.ts')
  const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...flags, program, folder, PROGRAMS.lean, PROGRAMS.full],
    { maxBuffer: MOST_PRINTED_BYTES },
  )
  ;[lean, full] = JSON.parse(stdout) as [Bundle, Bundle]
}, 300_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a program with one limiter of sluice/limiter', () => {
  it('carries no other algorithm', () => {
    const found = ({ code }: Bundle): string[] => Object.values(WORDS).filter((word) => code.includes(word))
    expect(found(full)).toEqual(Object.values(WORDS))
    expect(found(lean)).toEqual([])
  })

  it('has the size that the reference states', () => {
    const reference = readFileSync(join(repositoryRoot, 'docs/reference/package.md'), 'utf8')
    const [, leanSize, fullSize] = /one token bucket is (\d+) kB instead of (\d+) kB/.exec(reference) ?? []
    expect([lean, full].map(({ gzipBytes }) => String(Math.ceil(gzipBytes / 1000)))).toEqual([leanSize, fullSize])
  })
})
