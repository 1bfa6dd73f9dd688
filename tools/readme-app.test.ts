import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startRedis } from '@sluice/testing/servers'
import { expect, it } from 'vitest'
import { ExampleProcess } from './examples-process.ts'
import { repositoryRoot } from './workspace.ts'

const LIMIT = 100
const WINDOW_MS = 60_000

/** When an answer was given, by its server, in milliseconds and to the second. */
function secondOf(answer: Response): number {
  return new Date(answer.headers.get('date')!).getTime()
}

it('README.md has an Express app on Redis that works as it stands there', async () => {
  await using redis = await startRedis()
  const readme = readFileSync(join(repositoryRoot, 'README.md'), 'utf8')
  const [, program = ''] = /```js\n(\/\/ app\.mjs\n[\s\S]*?)```/.exec(readme) ?? []
  expect(program).toContain("redisStore('redis://localhost:6379')")
  expect(program).toContain('app.listen(3000)')
  const code = program
    .replace('redis://localhost:6379', redis.url)
    .replace('app.listen(3000)', "const server = app.listen(0, () => console.log('port ' + server.address().port))")
  const app = new ExampleProcess({
    command: process.execPath,
    args: ['--conditions=source', '--input-type=module', '--eval', code],
    cwd: repositoryRoot,
  })
  try {
    const url = `http://127.0.0.1:${await app.printed(/port (\d+)/)}/`
    const answers: Response[] = []
    while (answers.at(-1)?.status !== 429 && answers.length < 2 * LIMIT) answers.push(await fetch(url))
    const denied = answers.pop()!
    expect(denied.status).toBe(429)
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
    // A request that Redis does not answer in time is let through, with nothing counted.
    const counted = answers.filter((answer) => answer.headers.get('x-ratelimit-remaining') !== `${LIMIT}`)
    // The limit fills up while requests are made.
    const tookMs = secondOf(denied) - secondOf(answers[0]!) + 1000
    expect(counted.length).toBeGreaterThanOrEqual(LIMIT)
    expect(counted.length).toBeLessThanOrEqual(LIMIT + Math.ceil((tookMs * LIMIT) / WINDOW_MS))
  } finally {
    await app.stop('SIGTERM')
  }
})
