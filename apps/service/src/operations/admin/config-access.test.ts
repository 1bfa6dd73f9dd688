import type { ConfigStore } from '@sluice/config-store'
import { followConfig, openConfigStore } from '@sluice/config-store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startWithKeys } from './admin-node.test.support.ts'

async function openStore(): Promise<ConfigStore> {
  const config = await openConfigStore('sqlite::memory:')
  onTestFinished(() => config.close())
  return config
}

const CHANGE = { body: { active: true } }

describe('a change', () => {
  it('is made although it cannot be followed at once, which the log tells', async () => {
    const config = await openStore()
    const node = await startWithKeys(config, {
      follow: (target) => {
        const follower = followConfig({ feed: config.feed, target })
        const refresh = (): Promise<void> => Promise.reject(new Error('nothing to see'))
        const { close, ready, stats } = follower
        return {
          hasRules: true,
          refresh,
          ready: ready.bind(follower),
          stats: stats.bind(follower),
          close: close.bind(follower),
          [Symbol.asyncDispose]: close.bind(follower),
        }
      },
    })
    expect((await node.ask('PUT /admin/incident', CHANGE)).status).toBe(200)
    expect((await config.incident.get()).entry).toEqual({ active: true })
    expect(node.lines.map((line) => JSON.parse(line).message)).toEqual([
      'could not apply a configuration change at once',
    ])
  })

  it('carries the note of who makes it into the audit log and the version', async () => {
    const config = await openStore()
    const node = await startWithKeys(config)
    const rules = [{ dimension: 'user', limit: 1, window: '1m' }]
    await node.ask('PUT /admin/ratelimits', { body: { resource: '/a', rules, note: 'because' } })
    expect((await config.audit.list({ limit: 1 })).items).toMatchObject([{ note: 'because', by: 'the admin' }])
    expect((await node.ask('GET /admin/versions/1')).body).toMatchObject({ note: 'because', createdBy: 'the admin' })
  })

  it('is rejected while no database was reached at all', async () => {
    const config = await openStore()
    const node = await startWithKeys(config)
    const away = await startWithKeys(config, { withoutConfig: true })
    away.token = node.token
    for (const target of ['GET /admin/incident', 'GET /admin/api-keys']) {
      expect(await away.ask(target)).toMatchObject({ status: 503, body: { code: 'SLUICE_HTTP_CONFIG_UNAVAILABLE' } })
    }
    expect((await away.ask('PUT /admin/incident', CHANGE)).headers.get('retry-after')).toBe('2')
  })
})
