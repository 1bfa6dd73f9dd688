// Every block marked `ts` in the documents is a program: it is compiled with the strictness of the sources, run, and what
// it prints is compared with its comments. A block that begins with `// worker.ts` is a file that the other blocks of its
// document use. A program that names the Redis at the usual address gets one that was started for it.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type RedisServer, startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MarkdownExample } from './markdown-examples.ts'
import { examplesOf } from './markdown-examples.ts'
import { repositoryFiles } from './repository-files.ts'
import { repositoryRoot } from './workspace.ts'

const LONGEST_RUN_MS = 30_000

const run = promisify(execFile)

interface DocumentExample extends MarkdownExample {
  /** `path:line`, as an editor takes it. */
  readonly place: string
  /** Where it is written to, below the folder of this run. */
  readonly path: string
}

const examples: readonly DocumentExample[] = repositoryFiles(repositoryRoot)
  .filter((document) => document.endsWith('.md'))
  .flatMap((document) =>
    examplesOf(readFileSync(join(repositoryRoot, document), 'utf8')).map((example) => ({
      ...example,
      place: `${document}:${example.line}`,
      path: join(document, example.file ?? `line-${example.line}.ts`),
    })),
  )

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

/** Where documents say that a Redis is. */
const USUAL_REDIS = 'redis://localhost:6379'

describe('the examples of the documents', () => {
  let folder: string
  let server: RedisServer

  beforeAll(async () => {
    server = await startRedis()
    // Inside the repository, so that the packages of the workspace are found; ignored by git and by every check.
    mkdirSync(join(repositoryRoot, '.sluice'), { recursive: true })
    folder = mkdtempSync(join(repositoryRoot, '.sluice', 'examples-'))
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(PROJECT))
    for (const { path, code } of examples) {
      mkdirSync(join(folder, path, '..'), { recursive: true })
      writeFileSync(join(folder, path), code.replaceAll(USUAL_REDIS, server.url))
    }
  })

  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    await server.close()
  })

  it('are there', () => {
    expect(programs.map(({ place }) => place)).toContainEqual(expect.stringMatching(/^README\.md:/))
  })

  it('compile', async () => {
    const compiler = join(repositoryRoot, 'node_modules/typescript/bin/tsc')
    const complaints = await run(process.execPath, [compiler, '--project', folder], { cwd: folder }).then(
      () => '',
      (failed: { stdout: string; stderr: string }) => `${failed.stdout}${failed.stderr}` || String(failed),
    )
    expect(complaints).toBe('')
  })

  it.each(programs.map((example) => [example.place, example] as const))(
    '%s prints what it says',
    async (_, example) => {
      expect(example.unexplained).toEqual([])
      expect(example.expected).not.toEqual([])
      const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
      const { stdout, stderr } = await run(process.execPath, [...flags, join(folder, example.path)], {
        cwd: folder,
        timeout: LONGEST_RUN_MS,
      })
      expect(stderr).toBe('')
      expect(stdout.trimEnd().split('\n')).toEqual(example.expected)
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
