import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { answerJson, TableServer } from './table-server.test.support.ts'

const folder = join(import.meta.dirname, '..')

// The examples that need no service are run with those of all documents.
it('has an example that works with a service', async () => {
  const readme = readFileSync(join(folder, 'README.md'), 'utf8')
  const [, example = ''] = /```js\n([\s\S]*?)```/.exec(readme) ?? []
  const server = await TableServer.start()
  server.answer = ({ query }, response) => query['after'] !== undefined && answerJson(response, 200, { items: [] })
  const code = example.replace('http://127.0.0.1:8080', server.url)
  const flags = ['--conditions=source', '--input-type=module', '--eval', code]
  const options = { cwd: folder, env: { SLUICE_API_KEY: 'slk_4f9d1c_x' } }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, flags, options)
  expect([stdout, stderr]).toEqual(['true 523\nacme { multiplier: 5 }\n', ''])
  expect(server.asked.map(({ id, query }) => [id, query])).toEqual([
    ['check', {}],
    ['listOverrides', { dimension: 'user' }],
    ['listOverrides', { dimension: 'user', after: 'eyJhZnRlciI6MX0' }],
  ])
})
