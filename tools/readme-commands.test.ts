// Runs the app of the README, and the commands that the README and the guide to the service show with their output.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, startRedis } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { commandsOf, runCommand } from './document-commands.ts'
import { ExampleProcess } from './examples-process.ts'
import { repositoryRoot } from './workspace.ts'

const LIMIT = 100
const WINDOW_MS = 60_000

const readme = readFileSync(join(repositoryRoot, 'README.md'), 'utf8')
const guide = readFileSync(join(repositoryRoot, 'docs/guides/get-started/service.md'), 'utf8')

/** The text of a block whose first line is this comment. */
function fileBlock(comment: string): string {
  const start = readme.indexOf(`\n${comment}\n`)
  expect(start, comment).toBeGreaterThan(0)
  return readme.slice(start + 1, readme.indexOf('```', start))
}

/** Starts the app of the README on a free port, with `edit` applied to its text; it ends with the test. */
async function startApp(edit: (program: string) => string = (program) => program): Promise<string> {
  const program = edit(fileBlock('// app.mjs'))
  expect(program).toContain('app.listen(3000)')
  const code = program.replace(
    'app.listen(3000)',
    "const server = app.listen(0, () => console.log('port ' + server.address().port))",
  )
  const app = new ExampleProcess({
    command: process.execPath,
    args: ['--conditions=source', '--input-type=module', '--eval', code],
    cwd: repositoryRoot,
  })
  onTestFinished(async () => void (await app.stop('SIGTERM')))
  return `http://localhost:${await app.printed(/port (\d+)/)}`
}

/** Starts the service as `npm start` does, in a data folder of its own; it ends with the test. */
async function startService(args: readonly string[] = []): Promise<{ readonly url: string; readonly key: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-readme-'))
  const port = await freePort()
  const main = join(repositoryRoot, 'apps/service/src/main.ts')
  const service = new ExampleProcess({
    command: process.execPath,
    args: ['--conditions=source', main, ...args],
    cwd: repositoryRoot,
    env: { PORT: String(port), SLUICE_DATA_DIR: join(folder, 'data'), SLUICE_DRAIN_MS: '0' },
  })
  onTestFinished(async () => {
    await service.stop('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  })
  const key = await service.printed(/(slk_\w+)/)
  const url = `http://127.0.0.1:${port}`
  await expect.poll(() => isReady(url), { timeout: 20_000 }).toBe(true)
  return { url, key }
}

async function isReady(url: string): Promise<boolean> {
  return await fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** The one command of the README that contains this text. */
function readmeCommand(text: string) {
  const found = commandsOf(readme).filter(({ command }) => command.includes(text))
  expect(found).toHaveLength(1)
  return found[0]!
}

/** When an answer was given, by its server, in milliseconds and to the second. */
function secondOf(answer: Response): number {
  return new Date(answer.headers.get('date')!).getTime()
}

describe('the app of the README', () => {
  it('prints what the README shows', async () => {
    const { command, printed } = readmeCommand('http://localhost:3000/')
    const url = await startApp()
    expect(await runCommand(command.replace('http://localhost:3000', url))).toBe(printed)
  })

  it('counts on Redis with the line that the README shows', async () => {
    await using redis = await startRedis()
    const [, importLine = '', useLine = ''] =
      /```js\n(import \{ redisStore \}.*)\n\n(app\.use\(.*\))\n```/.exec(readme) ?? []
    expect(useLine).toContain("redisStore('redis://localhost:6379')")
    const url = await startApp((program) =>
      program
        .replace(/^app\.use\(.*\)$/m, useLine.replace('redis://localhost:6379', redis.url))
        .replace('import ', `${importLine}\nimport `),
    )
    const answers: Response[] = []
    while (answers.at(-1)?.status !== 429 && answers.length < 2 * LIMIT) answers.push(await fetch(url))
    const denied = answers.pop()!
    expect(denied.status).toBe(429)
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
    // A request that Redis does not answer in time is allowed, with nothing counted.
    const counted = answers.filter((answer) => answer.headers.get('x-ratelimit-remaining') !== `${LIMIT}`)
    // The limit refills while requests are made.
    const tookMs = secondOf(denied) - secondOf(answers[0]!) + 1000
    expect(counted.length).toBeGreaterThanOrEqual(LIMIT)
    expect(counted.length).toBeLessThanOrEqual(LIMIT + Math.ceil((tookMs * LIMIT) / WINDOW_MS))
  })
})

describe('the service of the README', () => {
  it('prints what the README shows', async () => {
    const { command, printed } = readmeCommand('/internal/ratelimit/check')
    const { url } = await startService()
    expect(await runCommand(command.replaceAll('http://127.0.0.1:8080', url))).toBe(printed)
  })

  it('explains the rules of the README as it shows', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-readme-rules-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'sluice.yaml'), fileBlock('# sluice.yaml'))
    const { url, key } = await startService(['--config', join(folder, 'sluice.yaml')])
    const { command, printed } = readmeCommand('/admin/explain')
    const answer = await runCommand(command.replaceAll('http://127.0.0.1:8080', url), { KEY: key })
    expect(JSON.parse(answer)).toMatchObject(JSON.parse(printed))
  })
})

describe('the guide to the service', () => {
  it('gets the answers that it shows, in its order', async () => {
    const steps = commandsOf(guide).filter(({ language }) => language === 'json')
    expect(steps.length).toBeGreaterThanOrEqual(7)
    const { url, key } = await startService()
    for (const { command, printed } of steps) {
      const answer = await runCommand(command, { SLUICE: url, KEY: key })
      expect(JSON.parse(answer), command).toMatchObject(JSON.parse(printed))
    }
  })
})

describe('commandsOf', () => {
  it('pairs commands with the block that follows, and leaves out commands without one', () => {
    const text = '```sh\nnpm start\n```\n\n```sh\nls \\\n  -a\n```\n\n```text\n.\n```\n'
    expect(commandsOf(text)).toEqual([{ command: 'ls \\\n  -a\n', language: 'text', printed: '.\n' }])
  })
})
