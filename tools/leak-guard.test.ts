import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { repositoryRoot } from './workspace.ts'

const CASES = {
  timer: ['Timeout', 'setTimeout(() => {}, 1e6)'],
  server: ['TCPServerWrap', "createServer().listen(0, '127.0.0.1')"],
  // It ends when its parent does.
  child: ['ProcessWrap', "spawn(process.execPath, ['-e', 'process.stdin.resume()'])"],
  worker: ['Worker', "new Worker('setInterval(() => {}, 1e6)', { eval: true })"],
  'clean-timer': [undefined, 'clearTimeout(setTimeout(() => {}, 1e6))'],
  'unref-timer': [undefined, 'setTimeout(() => {}, 1e6).unref()'],
  'closed-server': [
    undefined,
    "const server = createServer().listen(0, '127.0.0.1'); onTestFinished(() => void server.close())",
  ],
  'ended-worker': [undefined, "await new Worker('0', { eval: true }).terminate()"],
} as const

describe('the leak guard', () => {
  it.each([true, false])('fails exactly the files that leave something behind, isolated: %s', (isolate) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-leak-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    symlinkSync(join(repositoryRoot, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    for (const [name, [, statement]] of Object.entries(CASES)) {
      writeFileSync(
        join(folder, `${name}.test.ts`),
        `import { spawn } from 'node:child_process'
         import { createServer } from 'node:net'
         import { Worker } from 'node:worker_threads'
         import { it, onTestFinished } from 'vitest'
         void spawn, createServer, Worker, onTestFinished
         it('does something', async () => { ${statement} })`,
      )
    }
    writeFileSync(
      join(folder, 'vitest.config.ts'),
      `export default { test: { pool: 'forks', isolate: ${isolate}, maxWorkers: 2, setupFiles: ` +
        `['${join(repositoryRoot, 'tools/leak-guard.ts')}'] } }`,
    )
    const vitest = join(repositoryRoot, 'node_modules/vitest/vitest.mjs')
    const run = spawnSync(process.execPath, [vitest, 'run', '--reporter=json', '--outputFile=report'], { cwd: folder })
    const report = JSON.parse(readFileSync(join(folder, 'report'), 'utf8')) as {
      readonly testResults: readonly { readonly name: string; readonly status: string; readonly message: string }[]
    }
    const outcomes = report.testResults.map(({ name, status, message }) => [
      name.slice(folder.length + 1, -'.test.ts'.length),
      status === 'passed' ? undefined : /leaves behind: (.*)\. Close/.exec(message)?.[1],
    ])
    expect(Object.fromEntries(outcomes)).toEqual(
      Object.fromEntries(Object.entries(CASES).map(([name, [kind]]) => [name, kind && expect.stringContaining(kind)])),
    )
    expect(run.status).toBe(1)
  })
})
