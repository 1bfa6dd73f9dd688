import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigStore } from '@sluice/config-store'
import { followConfig, openConfigStore } from '@sluice/config-store'
import { systemTimers } from '@sluice/core'
import type { PostgresServer } from '@sluice/testing/servers'
import { startPostgres } from '@sluice/testing/servers'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { AdminNode, startWithKeys } from './admin-node.test.support.ts'
import { EXAMPLE_CALLS, ISSUED } from './example-calls.test.support.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})

afterAll(() => server.close())

beforeEach(async () => {
  if (server.status === 'ended') await server.restart()
})

async function openStore(url: string): Promise<ConfigStore> {
  const config = await openConfigStore(url, { deadlineMs: 500 })
  onTestFinished(() => config.close())
  return config
}

/** What is answered by the engine alone. */
const WITHOUT_DATABASE = ['usage', 'explain', 'reset']

describe('while the database is unreachable', () => {
  it('keys are known, questions are answered, and changes are rejected with 503 until it is back', async () => {
    const { url } = await server.createDatabase()
    const node = await startWithKeys(await openStore(url))
    await node.ask('PUT /admin/ratelimits', {
      body: { resource: '/orders', rules: [{ dimension: 'user', limit: 2, window: '1m' }] },
    })
    await server.stop()
    for (const { id, target, body } of EXAMPLE_CALLS) {
      const answer = await node.ask(target.replace(ISSUED, 'slk_some'), body === undefined ? {} : { body })
      if (WITHOUT_DATABASE.includes(id)) {
        expect([id, answer.status]).toEqual([id, 200])
        continue
      }
      expect([id, answer.status, answer.body['code']]).toEqual([id, 503, 'SLUICE_HTTP_CONFIG_UNAVAILABLE'])
      expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
      expect(answer.text).not.toContain(String(server.port))
    }
    expect(node.admitted(9, { resource: '/orders', user: 'u1' })).toBe(2)
    const { status } = await node.ask('GET /admin/ratelimits', { token: `${node.tokens.admin.slice(0, -4)}AAAA` })
    expect(status).toBe(401)
    await server.restart()
    for (;;) {
      if ((await node.ask('GET /admin/ratelimits')).status === 200) break
      await new Promise<void>((resolve) => void systemTimers.schedule(20, resolve))
    }
    expect((await node.ask('PUT /admin/incident', { body: { active: true } })).status).toBe(200)
  })

  it('a node that starts knows the keys that it knew last', async () => {
    const { url } = await server.createDatabase()
    const folder = await mkdtemp(join(tmpdir(), 'sluice-admin-api-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const cache = { path: join(folder, 'config.cache') }
    const config = await openStore(url)
    const first = await startWithKeys(config, {
      follow: (target) => followConfig({ feed: config.feed, target, cache }),
    })
    await first.follower.close()
    await server.stop()
    const node = await AdminNode.start({
      config,
      follow: (target) => followConfig({ feed: config.feed, target, cache, pollMs: 100 }),
    })
    expect(node.follower.stats().source).toBe('disk')
    expect((await node.ask('GET /admin/ratelimits/usage?userId=u1', { token: first.tokens.viewer })).status).toBe(200)
    expect((await node.ask('PUT /admin/incident', { token: first.tokens.viewer, body: { active: true } })).status).toBe(
      403,
    )
  })
})
