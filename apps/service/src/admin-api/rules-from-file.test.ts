import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engineTarget, fileConfig, followConfig, openConfigStore } from '@sluice/config-store'
import { memoryStore, PolicyEngine } from '@sluice/core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ApiKeyCache } from '../auth/api-key-cache.ts'
import { AdminNode, allItems, issueKeys, itemsOf } from './admin-node.test.support.ts'
import { EXAMPLE_CALLS, ISSUED } from './example-calls.test.support.ts'
import { FileReads } from './file-reads.ts'

const RULES = `
rules:
  - { resource: /orders, dimension: user, limit: 2, window: 1m }
  - { resource: /files/*, dimension: ip, limit: 5, window: 1s }
tiers:
  - { name: premium, multiplier: 10 }
exemptions:
  - { name: health, match: { resource: /health } }
denyList:
  - { name: bad, match: { cidrs: [192.0.2.0/24] } }
overrides:
  - { dimension: user, entity: u1, resource: /orders, terms: { limit: 3 } }
  - { dimension: user, entity: u2, resource: /orders, terms: { limit: 4 } }
members:
  - { dimension: tenant, entity: acme, tier: premium }
`

interface FileNode {
  readonly node: AdminNode
  readonly write: (text: string) => Promise<void>
}

/** A node that follows a file. Its keys are in a database, which it can change or not. */
async function startOnFile({ changesKeys = false } = {}): Promise<FileNode> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-admin-api-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'sluice.yaml')
  await writeFile(path, RULES)
  const keys = await openConfigStore('sqlite::memory:')
  onTestFinished(() => keys.close())
  const { admin } = await issueKeys(keys)
  const known = new ApiKeyCache()
  const nothing = new PolicyEngine({ store: memoryStore() })
  const follower = followConfig({ feed: keys.feed, target: engineTarget(nothing, { others: known }) })
  onTestFinished(() => follower.close())
  await follower.ready()
  let file: FileReads | undefined
  const node = await AdminNode.start({
    config: undefined,
    follow: (target, engine) => {
      file = new FileReads({ file: 'sluice.yaml', engine })
      return fileConfig(path, { target: file.watch(target), settleMs: 1 })
    },
    deskOf: () => ({ file: file!, ...(changesKeys ? { keys: { config: keys, follower } } : {}) }),
    keys: known,
  })
  node.token = admin
  return { node, write: (text) => writeFile(path, text) }
}

describe('a service whose rules come from a file', () => {
  it('shows them', async () => {
    const { node } = await startOnFile()
    expect((await node.ask('GET /admin/ratelimits')).body).toEqual({
      version: 1,
      items: [
        { resource: '/files/*', rules: [{ dimension: 'ip', limit: 5, window: '1s' }] },
        { resource: '/orders', rules: [{ dimension: 'user', limit: 2, window: '1m' }] },
      ],
    })
    expect(itemsOf(await node.ask('GET /admin/tiers'))).toEqual([{ name: 'premium', multiplier: 10 }])
    expect(itemsOf(await node.ask('GET /admin/exemptions'))).toHaveLength(1)
    expect(itemsOf(await node.ask('GET /admin/deny-list'))).toHaveLength(1)
    expect(itemsOf(await node.ask('GET /admin/versions'))).toMatchObject([{ number: 1, createdBy: 'sluice.yaml' }])
    expect((await node.ask('GET /admin/versions/1')).body).toMatchObject({ ruleSet: { tiers: [{ name: 'premium' }] } })
    expect((await node.ask('GET /admin/versions/1/diff?to=1')).body).toEqual({ from: 1, to: 1, changes: [] })
    expect((await node.ask('GET /admin/versions/2')).status).toBe(404)
    expect((await node.ask('GET /admin/versions/1/diff?to=2')).status).toBe(404)
    expect(itemsOf(await node.ask('GET /admin/audit'))).toEqual([])
    expect((await node.ask('GET /admin/incident')).body).toMatchObject({ entry: { active: false } })
  })

  it('shows its overrides and members, by page and by caller', async () => {
    const { node } = await startOnFile()
    const pages = await allItems(node, '/admin/overrides', 1)
    expect(pages).toMatchObject([
      [{ entry: { entity: 'u1' } }],
      [{ entry: { entity: 'u2' }, changedBy: 'sluice.yaml' }],
    ])
    expect(itemsOf(await node.ask('GET /admin/overrides?dimension=user&entity=u2'))).toMatchObject([
      { entry: { terms: { limit: 4 } } },
    ])
    expect(itemsOf(await node.ask('GET /admin/members?dimension=user'))).toEqual([])
    expect(itemsOf(await node.ask('GET /admin/members'))).toMatchObject([{ entry: { tier: 'premium' } }])
  })

  it('shows who is blocked, and what was used', async () => {
    const { node } = await startOnFile()
    node.engine.block('user', 'u9', { duration: '1h', reason: 'test' })
    expect(itemsOf(await node.ask('GET /admin/blocks'))).toMatchObject([{ entry: { entity: 'u9', reason: 'test' } }])
    expect(node.admitted(9, { resource: '/orders', user: 'u1' })).toBe(3)
    expect((await node.ask('GET /admin/ratelimits/usage?userId=u1')).body).toMatchObject({
      usage: [{ counters: [{ limit: 3, used: 3 }] }],
    })
    expect((await node.ask('POST /admin/reset', { body: { userId: 'u1' } })).status).toBe(204)
    expect(node.admitted(9, { resource: '/orders', user: 'u1' })).toBe(3)
  })

  it('follows the file', async () => {
    const { node, write } = await startOnFile()
    await write('rules:\n  - { resource: /new, dimension: user, limit: 1, window: 1m }\n')
    await node.follower.refresh()
    expect((await node.ask('GET /admin/ratelimits')).body).toMatchObject({ version: 2, items: [{ resource: '/new' }] })
    expect(itemsOf(await node.ask('GET /admin/overrides'))).toEqual([])
    expect(itemsOf(await node.ask('GET /admin/members'))).toEqual([])
  })

  it('has its API keys in a database, where they are changed', async () => {
    const { node } = await startOnFile({ changesKeys: true })
    const made = await node.ask('POST /admin/api-keys', { body: { name: 'deploy', role: 'viewer' } })
    const { token, apiKey } = made.body as { token: string; apiKey: { id: string } }
    expect((await node.ask('GET /admin/tiers', { token })).status).toBe(200)
    expect(itemsOf(await node.ask('GET /admin/api-keys'))).toContainEqual(apiKey)
    expect((await node.ask(`DELETE /admin/api-keys/${apiKey.id}`)).status).toBe(204)
    expect((await node.ask('GET /admin/tiers', { token })).status).toBe(401)
    expect(itemsOf(await node.ask('GET /admin/audit?by=the%20admin'))).toMatchObject([
      { action: 'api-key.revoke' },
      { action: 'api-key.create' },
    ])
    await node.ask('POST /admin/reset', { body: { userId: 'u1', note: 'a test' } })
    expect(itemsOf(await node.ask('GET /admin/audit?action=counters.reset'))).toMatchObject([
      { by: 'the admin', note: 'a test', target: 'user:u1' },
    ])
    expect((await node.send('PUT /admin/incident', { body: { active: true } })).status).toBe(409)
  })

  it('refuses every change, and says what to change instead', async () => {
    const { node } = await startOnFile()
    // Counters are this node's own, wherever the rules come from.
    const changes = EXAMPLE_CALLS.filter(({ id, audited }) => audited !== undefined && id !== 'reset')
    expect(changes.length).toBeGreaterThan(20)
    for (const { id, target, body } of changes) {
      const answer = await node.send(target.replace(ISSUED, 'slk_some'), body === undefined ? {} : { body })
      expect([id, answer.status]).toEqual([id, 409])
      expect(await answer.json()).toMatchObject({
        code: 'SLUICE_HTTP_CONFLICT',
        detail: 'The rules come from sluice.yaml: change that.',
      })
    }
    expect((await node.ask('GET /admin/ratelimits')).etag).toBe('"1"')
  })
})
