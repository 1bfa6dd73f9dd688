import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startRedis } from '@sluice/testing/servers'
import { expect, it } from 'vitest'
import { ExampleProcess } from './examples-process.ts'
import { repositoryRoot } from './workspace.ts'

const LIMIT = 100

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
    let admitted = 0
    let answer = await fetch(url)
    for (; answer.status === 200 && admitted < 2 * LIMIT; answer = await fetch(url)) admitted++
    expect(answer.status).toBe(429)
    // The limit fills up while requests are made, and one that Redis does not answer in time is let through.
    expect(admitted).toBeGreaterThanOrEqual(LIMIT)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  } finally {
    await app.stop('SIGTERM')
  }
})
