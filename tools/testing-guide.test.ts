// The test files that documents show, run by the frameworks that they are for, as their readers would.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { documentExamples, writeExamples } from './document-examples.ts'
import { repositoryRoot } from './workspace.ts'

const run = promisify(execFile)

const GUIDE = 'docs/guides/recipes/testing.md'

const STORES = 'docs/reference/store.md'

const examplesIn = (name: string) => documentExamples().filter(({ document }) => document === name)
const examples = examplesIn(GUIDE)

const CONFIG = `export default {
  test: { include: ['**/*-vitest.ts'], pool: 'forks' },
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'], externalConditions: ['source'] } },
}
`

describe(GUIDE, () => {
  let folder: string

  beforeAll(() => {
    // Inside the repository, so that the packages of the workspace are found; ignored by git and by every check.
    mkdirSync(join(repositoryRoot, '.sluice'), { recursive: true })
    folder = mkdtempSync(join(repositoryRoot, '.sluice', 'testing-guide-'))
    writeExamples(folder, [...examples, ...examplesIn(STORES)], { redisUrl: '', port: 0 })
    writeFileSync(join(folder, 'vitest.config.js'), CONFIG)
  })

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  async function printed(args: readonly string[]): Promise<string> {
    const env = { ...process.env, NODE_OPTIONS: '', FORCE_COLOR: '0' }
    const { stdout } = await run(process.execPath, args, { cwd: folder, env })
    return stripVTControlCharacters(stdout)
  }

  it('shows a file for each framework', () => {
    const files = examples.flatMap(({ file }) => file ?? [])
    expect(files).toEqual(['limit-vitest.ts', 'limit-node.ts', 'limit-clock-vitest.ts'])
  })

  it('passes in vitest', async () => {
    const vitest = join(repositoryRoot, 'node_modules/vitest/vitest.mjs')
    expect(await printed([vitest, 'run', '--root', folder, GUIDE])).toMatch(/Tests +3 passed \(3\)/)
  })

  it('passes in node:test', async () => {
    const file = join(folder, GUIDE, 'limit-node.ts')
    const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning', '--test']
    expect(await printed([...flags, file])).toMatch(/pass 2\n(?:.*\n)*.*fail 0\n/)
  })

  it('has a store that passes the suite in another document', async () => {
    const vitest = join(repositoryRoot, 'node_modules/vitest/vitest.mjs')
    const text = await printed([vitest, 'run', '--root', folder, STORES])
    expect(text).toMatch(/Test Files +1 passed/)
    expect(Number(/Tests +(\d+) passed/.exec(text)?.[1])).toBeGreaterThan(50)
  })
})
