// Every block marked `ts` in the documents is a program: it is compiled with the strictness of the sources, run, and
// what it prints is compared with its comments. A block that begins with `// worker.ts` is a file that the other blocks
// of its document use. A program that names the Redis at the usual address gets one that was started for it; port 3000
// becomes a free port.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, type RedisServer, startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compileProject, documentExamples, runExample, writeExamples } from './document-examples.ts'
import { examplesOf } from './markdown-examples.ts'
import { repositoryRoot } from './workspace.ts'

const examples = documentExamples()

const programs = examples.filter(({ file }) => file === undefined)

const PROJECT = {
  extends: '../../tsconfig.base.json',
  compilerOptions: {
    noEmit: true,
    composite: false,
    incremental: false,
    isolatedDeclarations: false,
    types: ['node'],
    // A program may name what it makes and leave it at that.
    noUnusedLocals: false,
  },
  include: ['**/*.ts'],
}

describe('the examples of the documents', () => {
  let folder: string
  let server: RedisServer

  beforeAll(async () => {
    server = await startRedis()
    // Inside the repository, so that the packages of the workspace are found; ignored by git and by every check.
    mkdirSync(join(repositoryRoot, '.sluice'), { recursive: true })
    folder = mkdtempSync(join(repositoryRoot, '.sluice', 'examples-'))
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(PROJECT))
    writeExamples(folder, examples, { redisUrl: server.url, port: await freePort() })
  })

  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    await server.close()
  })

  it('are there', () => {
    expect(programs.map(({ place }) => place)).toContainEqual(expect.stringMatching(/^README\.md:/))
  })

  it('compile', async () => {
    expect(await compileProject(folder)).toBe('')
  })

  it.each(programs.map((example) => [example.place, example] as const))(
    '%s prints what it says',
    // A check that Redis does not answer within 50 ms is let through without it, which a machine busy with other tests
    // can bring about. What a program prints wrongly it prints so every time.
    { retry: 2 },
    async (_, example) => {
      expect(example.unexplained).toEqual([])
      expect(example.expected).not.toEqual([])
      const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
      // Programs of several documents may count the same key.
      await server.command('FLUSHALL')
      const { lines, complaints } = await runExample(folder, example, flags)
      expect(complaints).toBe('')
      expect(lines).toEqual(example.expected)
    },
  )
})

describe('examplesOf', () => {
  it('finds the blocks marked ts, with their lines, and no others', () => {
    const found = examplesOf('# A\n\n```ts\nlet a = 1\n```\n\n```sh\nls\n```\n```ts\nlet b = 2\n```\n')
    expect(found.map(({ line, code }) => [line, code])).toEqual([
      [4, 'let a = 1\n'],
      [11, 'let b = 2\n'],
    ])
  })

  it('reads what each line prints from the comment at its end', () => {
    const [example] = examplesOf("```ts\n// a comment\nconsole.log('a') // a\nlet b = 2 // two\nconsole.log(b)\n```\n")
    expect(example).toMatchObject({ file: undefined, expected: ['a'], unexplained: ['console.log(b)'] })
  })

  it('knows a block that is a file', () => {
    expect(examplesOf('```ts\n// worker.ts\nlet a = 1\n```\n')[0]?.file).toBe('worker.ts')
    expect(examplesOf('```ts\n// see worker.ts\nlet a = 1\n```\n')[0]?.file).toBeUndefined()
  })
})
