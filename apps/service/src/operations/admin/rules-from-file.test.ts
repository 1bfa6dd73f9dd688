import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigFollower, ConfigStore } from '@sluice/config-store'
import { engineTarget, fileConfig, followConfig, openConfigStore } from '@sluice/config-store'
import type { OperationId } from '@sluice/contract'
import { memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { FakeClock } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FileConfigReads } from '../../config/config-reads.ts'
import { StateSizeCheck } from '../../config/state-size-check.ts'
import { AdminNode, allItems, issueKeys, itemsOf } from './admin-node.test.support.ts'
import { EXAMPLE_CALLS } from './example-calls.test.support.ts'

const RULES = `
incident: 0.5
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

const MEMBER = { dimension: 'user', entity: 'u1', tier: 'premium' } as const

/** Changes of what is not in the file: counters are this node's own, the rest is in the database. */
const ELSEWHERE: ReadonlySet<OperationId> = new Set<OperationId>([
  ...(['reset', 'putBlock', 'deleteBlock', 'putIncident'] as const),
  ...(['createApiKey', 'rotateApiKey', 'revokeApiKey'] as const),
])

interface FileNode {
  readonly node: AdminNode
  /** Where everything is that the file does not have. */
  readonly database: ConfigStore
  /** Keeps the node up to date with the database. */
  readonly beside: ConfigFollower
  readonly write: (text: string) => Promise<void>
}

async function openDatabase(): Promise<ConfigStore> {
  const database = await openConfigStore('sqlite::memory:')
  onTestFinished(() => database.close())
  return database
}

/** A node that follows a file, and beside it a database. */
async function startOnFile(given?: ConfigStore): Promise<FileNode> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-admin-api-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'sluice.yaml')
  await writeFile(path, RULES)
  const database = given ?? (await openDatabase())
  const { admin } = await issueKeys(database)
  const file = new FileConfigReads('sluice.yaml', new StateSizeCheck({ threads: 1, redis: undefined, stateSize: 64 }))
  const followers: ConfigFollower[] = []
  const node = await AdminNode.start({
    config: undefined,
    follow: (target) => {
      followers.push(followConfig({ feed: database.feed, target: file.beside(target) }))
      return fileConfig(path, { target: file.watch(target), settleMs: 1 })
    },
    deskOf: () => ({ file, database: { config: database, follower: followers[0]! } }),
  })
  const [beside] = followers as [ConfigFollower]
  onTestFinished(() => beside.close())
  await beside.ready()
  node.token = admin
  return { node, database, beside, write: (text) => writeFile(path, text) }
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

  it('shows what was used, and resets it', async () => {
    const { node } = await startOnFile()
    expect(node.admitted(9, { resource: '/orders', user: 'u1' })).toBe(3)
    expect((await node.ask('GET /admin/ratelimits/usage?userId=u1')).body).toMatchObject({
      usage: [{ counters: [{ limit: 3, used: 3 }] }],
    })
    expect((await node.ask('POST /admin/reset', { body: { userId: 'u1' } })).status).toBe(200)
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
    const { node } = await startOnFile()
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
  })

  it('rejects every change of what the file has, and says what to change instead', async () => {
    const { node } = await startOnFile()
    const changes = EXAMPLE_CALLS.filter(({ id, audited }) => audited !== undefined && !ELSEWHERE.has(id))
    expect(changes).toHaveLength(18)
    for (const { id, target, body } of changes) {
      const answer = await node.ask(target, body === undefined ? {} : { body })
      expect([id, answer.status]).toEqual([id, 409])
      expect(answer.body).toMatchObject({
        code: 'SLUICE_HTTP_CONFLICT',
        detail:
          'Rules, tiers, exemptions, the deny list, overrides and members come from sluice.yaml. Change them ' +
          'there: the file is followed, and needs no restart. Blocks, the incident and API keys are changed here.',
      })
    }
    expect((await node.ask('GET /admin/ratelimits')).etag).toBe('"1"')
  })
})

describe('blocks beside a file', () => {
  const request = { resource: '/orders', user: 'u9' }

  it('are set, listed and lifted, with a note in the audit log', async () => {
    const { node } = await startOnFile()
    const put = await node.ask('PUT /admin/blocks', {
      body: { dimension: 'user', entity: 'u9', duration: '1h', reason: 'test' },
    })
    expect([put.status, node.engine.check(request).reason]).toEqual([200, 'blocked'])
    expect(itemsOf(await node.ask('GET /admin/blocks'))).toMatchObject([{ entry: { entity: 'u9', reason: 'test' } }])
    expect((await node.ask('DELETE /admin/blocks?dimension=user&entity=u9')).status).toBe(204)
    expect(node.engine.check(request).reason).toBe('allowed')
    expect(itemsOf(await node.ask('GET /admin/blocks'))).toEqual([])
    expect(itemsOf(await node.ask('GET /admin/audit?by=the%20admin'))).toMatchObject([
      { action: 'block.remove' },
      { action: 'block.put' },
    ])
  })

  it('hold on every node of the database, and after a restart', async () => {
    const { node, database } = await startOnFile()
    const there = await startOnFile(database)
    await node.ask('PUT /admin/blocks', { body: { dimension: 'user', entity: 'u9', duration: '1h' } })
    await there.beside.refresh()
    const later = await startOnFile(database)
    for (const one of [there.node, later.node]) expect(one.engine.check(request).reason).toBe('blocked')
    expect((await later.node.ask('DELETE /admin/blocks?dimension=user&entity=u9')).status).toBe(204)
    await there.beside.refresh()
    expect(there.node.engine.check(request).reason).toBe('allowed')
  })
})

describe('the incident beside a file', () => {
  const limitOf = ({ engine }: AdminNode): number => engine.peek({ resource: '/orders', user: 'u9' }).limit

  it('is switched, and holds on every node of the database and after a restart', async () => {
    const { node, database } = await startOnFile()
    const there = await startOnFile(database)
    expect((await node.ask('GET /admin/incident')).body).toMatchObject({ entry: { active: false } })
    expect((await node.ask('PUT /admin/incident', { body: { active: true } })).status).toBe(200)
    expect((await node.ask('GET /admin/incident')).body).toMatchObject({ entry: { active: true } })
    await there.beside.refresh()
    const later = await startOnFile(database)
    expect([limitOf(node), limitOf(there.node), limitOf(later.node)]).toEqual([1, 1, 1])
    expect((await later.node.ask('PUT /admin/incident', { body: { active: false } })).status).toBe(200)
    await there.beside.refresh()
    expect([limitOf(there.node), limitOf(later.node)]).toEqual([2, 2])
  })
})

describe('a database beside a file', () => {
  it('may have rules, overrides and members, which do not count', async () => {
    const database = await openDatabase()
    const author = { name: 'before' }
    await database.versions.edit(
      () => ({ rules: [{ resource: '*', dimension: 'user', limit: 1, window: '1m' }], tiers: [{ name: 'gold' }] }),
      author,
      0,
    )
    await database.overrides.put({ dimension: 'user', entity: 'u1', resource: '/orders', terms: { limit: 99 } }, author)
    await database.members.put({ dimension: 'tenant', entity: 'acme', tier: 'gold' }, author)
    const { node, beside } = await startOnFile(database)
    expect(node.engine.peek({ resource: '/orders', user: 'u1' }).limit).toBe(3)
    await database.overrides.remove({ dimension: 'user', entity: 'u1', resource: '/orders' }, author)
    await beside.refresh()
    expect(node.engine.peek({ resource: '/orders', user: 'u1' }).limit).toBe(3)
    expect(itemsOf(await node.ask('GET /admin/members'))).toMatchObject([{ entry: { tier: 'premium' } }])
  })

  it('that is reloaded leaves the entries of the file in force, and drops blocks that are gone', () => {
    const clock = new FakeClock()
    const engine = new PolicyEngine({ store: memoryStore({ clock }), clock })
    const target = engineTarget(engine)
    const file = new FileConfigReads('sluice.yaml', new StateSizeCheck({ threads: 1, redis: undefined, stateSize: 64 }))
    const [fromFile, beside] = [file.watch(target), file.beside(target)]
    const override = { dimension: 'user', entity: 'u1', resource: '*', terms: { limit: 7 } } as const
    const block = { dimension: 'user', entity: 'u9', until: 1e15, strikes: 1, forgottenAt: 1e15 } as const
    fromFile.apply([
      { kind: 'override', key: override, entry: override },
      { kind: 'member', key: MEMBER, entry: MEMBER },
    ])
    beside.apply([
      { kind: 'block', key: block, entry: block },
      { kind: 'incident', entry: { active: true } },
    ])
    expect(engine.entries.sizes).toMatchObject({ overrides: 1, members: 1, blocks: 1 })
    beside.beginReload()
    fromFile.apply([{ kind: 'member', key: MEMBER, entry: undefined }])
    beside.apply([{ kind: 'member', key: MEMBER, entry: MEMBER }])
    beside.endReload()
    expect(engine.entries.sizes).toMatchObject({ overrides: 1, members: 0, blocks: 0 })
  })
})
