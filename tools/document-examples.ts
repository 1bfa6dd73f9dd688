import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { MarkdownExample } from './markdown-examples.ts'
import { examplesOf } from './markdown-examples.ts'
import { repositoryFiles } from './repository-files.ts'
import { repositoryRoot } from './workspace.ts'

/** A TypeScript block of a document of this repository. */
export interface DocumentExample extends MarkdownExample {
  /** The document, relative to the repository. */
  readonly document: string
  /** `path:line`, as an editor takes it. */
  readonly place: string
  /** Where {@link writeExamples} puts it, below its folder. */
  readonly path: string
}

/** Where documents say that a Redis is. */
const USUAL_REDIS = 'redis://localhost:6379'

/** The port that apps in documents listen on, where they listen and where they are called. */
const USUAL_PORT = /(?<=\.listen\(|localhost:)3000\b/g

/** What the machine that runs the examples offers in place of the usual addresses. */
export interface ExampleAddresses {
  readonly redisUrl: string
  /** Free; examples run one after the other. */
  readonly port: number
}

const LONGEST_RUN_MS = 30_000

const run = promisify(execFile)

/** The TypeScript blocks of every document of the repository. */
export function documentExamples(): DocumentExample[] {
  return repositoryFiles(repositoryRoot)
    .filter((document) => document.endsWith('.md'))
    .flatMap((document) =>
      examplesOf(readFileSync(join(repositoryRoot, document), 'utf8')).map((example) => ({
        ...example,
        document,
        place: `${document}:${example.line}`,
        path: join(document, example.file ?? `line-${example.line}.ts`),
      })),
    )
}

/** Writes examples as files, a folder for each document, with addresses that can be used. */
export function writeExamples(
  folder: string,
  examples: readonly DocumentExample[],
  { redisUrl, port }: ExampleAddresses,
): void {
  for (const { path, code } of examples) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    const text = code.replaceAll(USUAL_REDIS, redisUrl).replaceAll(USUAL_PORT, String(port))
    writeFileSync(join(folder, path), text)
  }
}

/** Runs a TypeScript file that {@link writeExamples} wrote, with these flags of Node; what it printed. */
export async function runExample(
  folder: string,
  { path }: DocumentExample,
  flags: readonly string[],
): Promise<{ readonly lines: readonly string[]; readonly complaints: string }> {
  const { stdout, stderr } = await run(process.execPath, [...flags, join(folder, path)], {
    cwd: folder,
    timeout: LONGEST_RUN_MS,
    // What is printed is compared, also where the terminal of the tests has colours.
    env: { ...process.env, FORCE_COLOR: '0' },
  })
  return { lines: stdout.trimEnd().split('\n'), complaints: stderr }
}

/** Compiles the TypeScript project of a folder; what the compiler has to say, nothing when all is well. */
export async function compileProject(folder: string, project = 'tsconfig.json'): Promise<string> {
  const compiler = join(repositoryRoot, 'node_modules/typescript/bin/tsc')
  return await run(process.execPath, [compiler, '--project', join(folder, project)], { cwd: folder }).then(
    () => '',
    (failed: { stdout: string; stderr: string }) => `${failed.stdout}${failed.stderr}` || String(failed),
  )
}
