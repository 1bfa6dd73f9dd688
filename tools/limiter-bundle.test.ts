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

/** A program that only checks stays below this. */
const MOST_CHECKING_BYTES = 12_000

const PROGRAMS = {
  checking: `import { createMemoryLimiter, tokenBucket } from 'sluice/limiter'
    console.log(createMemoryLimiter(tokenBucket({ capacity: 1, refillPerSecond: 1 })).tryAcquire('a'))`,
  lean: `import { createLimiter, tokenBucket } from 'sluice/limiter'
    console.log(createLimiter(tokenBucket({ capacity: 1, refillPerSecond: 1 })).tryAcquire('a'))`,
  full: `import { createLimiter, tokenBucket } from 'sluice'
    console.log(createLimiter(tokenBucket({ capacity: 1, refillPerSecond: 1 })).tryAcquire('a'))`,
}

let folder: string
let checking: Bundle
let lean: Bundle
let full: Bundle

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-bundle-'))
  await addPackage(folder)
  const program = join(repositoryRoot, 'tools/bundle-programs.ts')
  const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...flags, program, folder, PROGRAMS.checking, PROGRAMS.lean, PROGRAMS.full],
    { maxBuffer: MOST_PRINTED_BYTES },
  )
  ;[checking, lean, full] = JSON.parse(stdout) as [Bundle, Bundle, Bundle]
}, 300_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a program with one limiter of sluice/limiter', () => {
  it('carries no other algorithm', () => {
    const found = ({ code }: Bundle): string[] => Object.values(WORDS).filter((word) => code.includes(word))
    expect(found(full)).toEqual(Object.values(WORDS))
    expect(found(lean)).toEqual([])
    expect(found(checking)).toEqual([])
  })

  it('has the size that the reference states', () => {
    const reference = readFileSync(join(repositoryRoot, 'docs/reference/package.md'), 'utf8')
    const stated = (program: RegExp): string | undefined => program.exec(reference)?.[1]
    expect([checking, lean, full].map(({ gzipBytes }) => String(Math.ceil(gzipBytes / 1000)))).toEqual([
      stated(/^\| `createMemoryLimiter\(.* \| `sluice\/limiter` \| (\d+) kB \|$/m),
      stated(/^\| `createLimiter\(.* \| `sluice\/limiter` \| (\d+) kB \|$/m),
      stated(/^\| `createLimiter\(.* \| `sluice` \| (\d+) kB \|$/m),
    ])
  })

  it('that only checks is smaller than 12 kB, with every message of its own rule', () => {
    expect(checking.gzipBytes).toBeLessThan(MOST_CHECKING_BYTES)
    for (const word of ['Did you mean', 'units per second, above 0', 'fractions such as 2.5']) {
      expect(checking.code.includes(word), word).toBe(true)
    }
    for (const word of ['an AbortSignal', 'the decision to refund', 'is a promise: await it']) {
      expect(lean.code.includes(word), word).toBe(true)
      expect(checking.code.includes(word), word).toBe(false)
    }
  })
})
