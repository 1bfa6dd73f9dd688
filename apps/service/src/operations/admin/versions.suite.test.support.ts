import { describe, expect, it } from 'vitest'
import type { AdminNode, ReadAnswer } from './admin-node.test.support.ts'
import { allItems, itemsOf, startWithKeys, wrongPaths } from './admin-node.test.support.ts'
import type { TestDatabases } from './database.test.support.ts'

/** A rule set with one rule: `limit` per minute for each user. */
function perUser(limit: number): object {
  return { rules: [{ resource: '*', dimension: 'user', limit, window: '1m' }] }
}

/** The same for `PUT /admin/ratelimits`. */
function rulesOf(limit: number): object {
  return { resource: '*', rules: [{ dimension: 'user', limit, window: '1m' }] }
}

const PER_USER = { dimension: 'user', limit: 1, window: '1m' }

const SHOP = `domain: shop
descriptors:
  - key: ip
    rate_limit: { unit: minute, requests_per_unit: 60 }
`

/** A draft by who has seen what is enforced. */
async function draftOf(node: AdminNode, draft: object, options: object = {}): Promise<ReadAnswer> {
  const { version } = (await node.ask('GET /admin/ratelimits')).body
  return await node.ask('POST /admin/versions', { body: { basedOn: version, ...draft }, ...options })
}

/** What the admin API promises about versions of the rule set and about the audit log. */
export function describeVersions(databases: TestDatabases): void {
  const start = async (): Promise<AdminNode> => await startWithKeys(await (await databases.create())())
  /** A node on which version 1, two a minute, is enforced. */
  const startEnforced = async (): Promise<AdminNode> => {
    const node = await start()
    await draftOf(node, { ruleSet: perUser(2) })
    await node.ask('POST /admin/versions/1/stage', { body: { stage: 'enforce' } })
    return node
  }
  const admitted = (node: AdminNode, user: string): number => node.admitted(9, { resource: '/', user })

  describe('versions', () => {
    it('begin as drafts without effect, and are shown with what is in them', async () => {
      const node = await startEnforced()
      const draft = await draftOf(node, { ruleSet: perUser(5), note: 'more' })
      expect(draft).toMatchObject({
        status: 201,
        body: { number: 2, stage: 'draft', percent: 0, basedOn: 1, createdBy: 'the admin', note: 'more' },
      })
      expect(draft.headers.get('location')).toBe('/admin/versions/2')
      expect(admitted(node, 'u1')).toBe(2)
      const shown = await node.ask('GET /admin/versions/2')
      expect(shown.body).toEqual({ ...draft.body, ruleSet: perUser(5) })
      expect(shown.etag).toBe(`"${draft.body['revision']}"`)
      expect((await node.ask('GET /admin/versions/3')).status).toBe(404)
      expect((await node.ask('GET /admin/versions/two')).status).toBe(400)
    })

    it('come in pages, newest first', async () => {
      const node = await startEnforced()
      for (const limit of [3, 4]) await draftOf(node, { ruleSet: perUser(limit) })
      const pages = await allItems(node, '/admin/versions', 2)
      expect(pages.map((page) => page.map((version) => (version as { number: number }).number))).toEqual([[3, 2], [1]])
      expect(JSON.stringify(pages)).not.toContain('ruleSet')
    })

    it('go from draft over shadow and a share of the callers to all, and back in one call', async () => {
      const node = await startEnforced()
      await draftOf(node, { ruleSet: perUser(5) })
      const stage = async (body: object): Promise<Readonly<Record<string, unknown>>> =>
        (await node.ask('POST /admin/versions/2/stage', { body })).body
      expect(await stage({ stage: 'shadow' })).toMatchObject({ number: 2, stage: 'shadow' })
      expect([admitted(node, 'u1'), node.follower.stats().candidateVersion]).toEqual([2, 2])
      expect(await stage({ stage: 'percent', percent: 100 })).toMatchObject({ stage: 'percent', percent: 100 })
      expect(admitted(node, 'u2')).toBe(5)
      expect(await stage({ stage: 'enforce' })).toMatchObject({ stage: 'enforce' })
      expect([admitted(node, 'u3'), node.engine.version]).toEqual([5, 2])
      const back = await node.ask('POST /admin/versions/rollback', { body: { note: 'too much' } })
      expect(back.body).toMatchObject({ number: 1, stage: 'enforce' })
      expect([admitted(node, 'u4'), node.engine.version]).toEqual([2, 1])
      expect((await node.ask('POST /admin/versions/rollback', { body: { to: 2 } })).body).toMatchObject({ number: 2 })
    })

    it('are compared', async () => {
      const node = await startEnforced()
      await draftOf(node, { ruleSet: { ...perUser(5), incident: 0.5 } })
      const diff = await node.ask('GET /admin/versions/1/diff?to=2')
      expect(diff.body).toMatchObject({
        from: 1,
        to: 2,
        changes: [
          { change: 'changed', part: 'rules', before: { limit: 2 }, after: { limit: 5 } },
          { change: 'added', part: 'incident', name: '', after: 0.5 },
        ],
      })
      expect((await node.ask('GET /admin/versions/2/diff?to=2')).body).toEqual({ from: 2, to: 2, changes: [] })
      expect((await node.ask('GET /admin/versions/1/diff?to=9')).status).toBe(404)
      expect((await node.ask('GET /admin/versions/1/diff')).status).toBe(400)
    })

    it('do not take the place of one that their author has not seen', async () => {
      const node = await startEnforced()
      for (const limit of [3, 4]) await draftOf(node, { ruleSet: perUser(limit) })
      expect((await node.ask('POST /admin/versions/2/stage', { body: { stage: 'enforce' } })).status).toBe(200)
      const late = await node.ask('POST /admin/versions/3/stage', { body: { stage: 'enforce' } })
      expect(late).toMatchObject({ status: 409, body: { code: 'SLUICE_HTTP_CONFLICT' } })
      expect(late.body['detail']).toContain('based on version 1, and version 2 is enforced')
      expect(admitted(node, 'u1')).toBe(3)
    })

    it('say which one their author has seen, and what to do when they do not', async () => {
      const node = await startEnforced()
      const unsaid = await node.ask('POST /admin/versions', { body: { ruleSet: perUser(3) } })
      expect([unsaid.status, wrongPaths(unsaid)]).toEqual([400, ['/basedOn']])
      expect(unsaid.text).toContain(
        'the number of the version that its author has seen enforced, which GET /admin/ratelimits',
      )
      expect(itemsOf(await node.ask('GET /admin/versions'))).toHaveLength(1)
    })

    it('of two editors based on the same one: the second is rejected, and the first is kept', async () => {
      const node = await startEnforced()
      const seen = (await node.ask('GET /admin/ratelimits')).body['version']
      for (const limit of [3, 4]) {
        await node.ask('POST /admin/versions', { body: { ruleSet: perUser(limit), basedOn: seen } })
      }
      const enforce = { body: { stage: 'enforce' } }
      expect((await node.ask('POST /admin/versions/2/stage', enforce)).status).toBe(200)
      expect((await node.ask('POST /admin/versions/3/stage', enforce)).status).toBe(409)
      expect(admitted(node, 'u1')).toBe(3)
    })

    it('are gone back from once by two who have seen the same one', async () => {
      const node = await startEnforced()
      for (const limit of [3, 4]) await node.ask('PUT /admin/ratelimits', { body: rulesOf(limit) })
      const rollback = (ifMatch: string, body: object = {}): Promise<ReadAnswer> =>
        node.ask('POST /admin/versions/rollback', { body, ifMatch })
      const { etag } = await node.ask('GET /admin/ratelimits')
      expect(etag).toBe('"3"')
      const first = await rollback(etag!)
      expect(first).toMatchObject({ status: 200, body: { number: 2 }, etag: '"2"' })
      for (const late of [await rollback(etag!), await rollback(etag!, { to: 1 }), await rollback('"4"')]) {
        expect(late).toMatchObject({ status: 412, body: { code: 'SLUICE_HTTP_PRECONDITION_FAILED' } })
        expect(late.body['detail']).toContain('version 2 is enforced')
      }
      for (const unknown of ['2', 'W/"2"', '"two"', '']) expect((await rollback(unknown)).status).toBe(412)
      expect(node.engine.version).toBe(2)
      // Seen rightly, and impossible all the same.
      await draftOf(node, { ruleSet: perUser(9) })
      expect((await rollback('"2"', { to: 4 })).status).toBe(409)
      expect((await rollback('*', { to: 3 })).body).toMatchObject({ number: 3 })
      expect((await rollback('"3"', { to: 1 })).body).toMatchObject({ number: 1 })
    })

    it('of which two are moved on at once: one is, the other is a conflict', async () => {
      const node = await startEnforced()
      for (const limit of [3, 4]) await draftOf(node, { ruleSet: perUser(limit) })
      const answers = await Promise.all(
        [2, 3].map((number) => node.ask(`POST /admin/versions/${number}/stage`, { body: { stage: 'shadow' } })),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    })

    it('are not moved on by who has seen them at another stage', async () => {
      const node = await startEnforced()
      const { body: draft } = await draftOf(node, { ruleSet: perUser(3) })
      const seen = `"${draft['revision']}"`
      const stage = 'POST /admin/versions/2/stage'
      const moved = await node.ask(stage, { body: { stage: 'shadow' }, ifMatch: seen })
      expect(moved.status).toBe(200)
      const stale = await node.ask(stage, { body: { stage: 'enforce' }, ifMatch: seen })
      expect(stale).toMatchObject({ status: 412, body: { code: 'SLUICE_HTTP_PRECONDITION_FAILED' } })
      // Seen rightly, and impossible all the same.
      const { body: other } = await draftOf(node, { ruleSet: perUser(4) })
      const blocked = await node.ask('POST /admin/versions/3/stage', {
        body: { stage: 'shadow' },
        ifMatch: `"${other['revision']}"`,
      })
      expect(blocked).toMatchObject({ status: 409, body: { code: 'SLUICE_HTTP_CONFLICT' } })
      expect((await node.ask(stage, { body: { stage: 'enforce' }, ifMatch: moved.etag! })).status).toBe(200)
      expect((await node.ask('POST /admin/versions/9/stage', { body: { stage: 'shadow' } })).status).toBe(404)
      expect((await node.ask('POST /admin/versions/9/stage', { body: { stage: 'shadow' }, ifMatch: '*' })).status).toBe(
        412,
      )
    })

    it.each([
      [{ stage: 'percent' }, '/percent'],
      [{ stage: 'shadow', percent: 5 }, '/percent'],
      [{ stage: 'percent', percent: 101 }, '/percent'],
      [{ stage: 'draft' }, '/stage'],
      [{ stage: 'enforce', force: true }, '/force'],
    ])('are not moved on by %j', async (body, path) => {
      const node = await startEnforced()
      const wrong = await node.ask('POST /admin/versions/1/stage', { body })
      expect([wrong.status, wrongPaths(wrong)]).toEqual([400, [path]])
    })

    it('are rejected with everything that is wrong, at its place in the body', async () => {
      const node = await start()
      const rule = { resource: '*', dimension: 'user', limit: 1, window: '1m' }
      const ruleSet = { rules: [{ ...rule, window: '0s' }], tiers: [{ name: 'a' }, { name: 'a' }] }
      const wrong = await draftOf(node, { ruleSet })
      expect([wrong.status, wrongPaths(wrong)]).toEqual([422, ['/ruleSet/rules/0/window', '/ruleSet/tiers/1/name']])
      const unknown = await draftOf(node, { ruleSet: { ...perUser(1), rule } })
      expect([unknown.status, wrongPaths(unknown)]).toEqual([400, ['/ruleSet/rule']])
      const base = await node.ask('POST /admin/versions', { body: { ruleSet: perUser(1), basedOn: 7 } })
      expect([base.status, wrongPaths(base)]).toEqual([400, ['/basedOn']])
      expect(itemsOf(await node.ask('GET /admin/versions'))).toEqual([])
    })

    it('do not change exemptions and the deny list for an editor, by whichever operation', async () => {
      const node = await startWithKeys(await (await databases.create())())
      const editor = { token: node.tokens.editor }
      const exempt = { ...perUser(1), exemptions: [{ name: 'all', match: { resource: '/*' } }] }
      const denied = { ...perUser(1), denyList: [{ name: 'bad', match: { cidrs: ['192.0.2.0/24'] } }] }
      await node.ask('PUT /admin/ratelimits', { body: { resource: '*', rules: [PER_USER] } })
      const draft = (ruleSet: object, options: object = {}): Promise<ReadAnswer> => draftOf(node, { ruleSet }, options)
      const stage = (number: number, body: object, options: object = {}): Promise<ReadAnswer> =>
        node.ask(`POST /admin/versions/${number}/stage`, { body, ...options })
      const back = (body: object, options: object = {}): Promise<ReadAnswer> =>
        node.ask('POST /admin/versions/rollback', { body, ...options })
      const forbidden = { status: 403, body: { code: 'SLUICE_HTTP_FORBIDDEN' } }
      // As they are, all is the editor's.
      expect((await draft({ ...perUser(2), exemptions: [], denyList: [] }, editor)).status).toBe(201)
      expect((await stage(2, { stage: 'enforce' }, editor)).status).toBe(200)
      expect((await back({}, editor)).status).toBe(200)
      for (const ruleSet of [exempt, denied, { ...exempt, ...denied }]) {
        expect(await draft(ruleSet, editor)).toMatchObject(forbidden)
      }
      expect((await draft(exempt)).body).toMatchObject({ number: 3 })
      for (const body of [{ stage: 'shadow' }, { stage: 'percent', percent: 100 }, { stage: 'enforce' }]) {
        expect(await stage(3, body, editor)).toMatchObject(forbidden)
      }
      expect(node.engine.version).toBe(1)
      expect((await stage(3, { stage: 'enforce' })).status).toBe(200)
      // To take the exemption away is the same.
      for (const body of [{}, { to: 1 }]) expect((await back(body, editor)).body['detail']).toContain('"admin"')
      expect(await draft(perUser(2), editor)).toMatchObject(forbidden)
      // In another order of fields it is as it was.
      const same = { ...perUser(2), exemptions: [{ match: { resource: '/*' }, name: 'all' }] }
      expect((await draft(same, editor)).status).toBe(201)
      expect((await stage(4, { stage: 'percent', percent: 50 }, editor)).status).toBe(200)
      // Enforced meanwhile is something else; it can still be taken back.
      await node.ask('DELETE /admin/exemptions/all')
      expect((await stage(4, { stage: 'enforce' }, editor)).status).not.toBe(200)
      expect((await stage(4, { stage: 'retired' }, editor)).status).toBe(200)
    })

    it('cannot go back where there is nothing to go back to', async () => {
      const node = await start()
      expect((await node.ask('POST /admin/versions/rollback', { body: {} })).status).toBe(404)
      expect((await node.ask('POST /admin/versions/rollback', { body: {}, ifMatch: '*' })).status).toBe(412)
      await draftOf(node, { ruleSet: perUser(1) })
      expect((await node.ask('POST /admin/versions/rollback', { body: { to: 1 } })).status).toBe(409)
      expect((await node.ask('POST /admin/versions/rollback', { body: { to: 5 } })).status).toBe(404)
    })
  })

  describe('import', () => {
    it('makes a draft of Envoy files beside the rules that are enforced', async () => {
      const node = await startEnforced()
      const body = { files: [{ name: 'shop.yaml', text: SHOP }], note: 'from the old service' }
      const draft = await node.ask('POST /admin/versions/import', { body })
      expect(draft).toMatchObject({ status: 201, body: { number: 2, stage: 'draft', basedOn: 1 } })
      const descriptors = [{ key: 'ip', limit: { unit: 'minute', requestsPerUnit: 60 } }]
      expect((await node.ask('GET /admin/versions/2')).body).toMatchObject({
        ruleSet: { ...perUser(2), domains: [{ domain: 'shop', descriptors }] },
      })
    })

    it('rejects files without a single limit, which would take all limits away', async () => {
      const node = await startEnforced()
      const files = [
        { name: 'shop.yaml', text: 'domain: shop\n' },
        { name: 'mail.yaml', text: 'domain: mail\ndescriptors:\n  - key: to\n    descriptors:\n      - key: from\n' },
      ]
      const rejected = await node.ask('POST /admin/versions/import', { body: { files } })
      expect(rejected.status).toBe(422)
      expect(rejected.body['errors']).toMatchObject([
        { path: 'shop.yaml#/descriptors', received: 'no limits', expected: expect.stringContaining('rate_limit') },
        { path: 'mail.yaml#/descriptors', received: 'no limits' },
      ])
      expect(itemsOf(await node.ask('GET /admin/versions'))).toHaveLength(1)
      const one = { files: [...files, { name: 'with.yaml', text: SHOP.replace('shop', 'with') }] }
      expect((await node.ask('POST /admin/versions/import', { body: one })).status).toBe(201)
    })

    it('says everything that is wrong in all files, with lines', async () => {
      const node = await start()
      const files = [
        { name: 'shop.yaml', text: SHOP },
        { name: 'bad.yaml', text: 'domain: bad\ndescriptors:\n  - key: ip\n    limit: 5\n' },
        { name: 'twice.yaml', text: SHOP },
      ]
      const wrong = await node.ask('POST /admin/versions/import', { body: { files } })
      expect(wrong.status).toBe(422)
      expect(wrongPaths(wrong)).toEqual([
        'bad.yaml#/descriptors/0/limit',
        'twice.yaml#/domain',
        'twice.yaml#/descriptors/0',
      ])
      expect(wrong.body['errors']).toMatchObject([{ line: 4 }, { line: 1 }, { line: 3 }])
      const merged = await node.ask('POST /admin/versions/import', {
        body: {
          files: [files[0], { name: 'more.yaml', text: 'domain: shop\ndescriptors:\n  - key: path\n' }],
          mergeDomains: true,
        },
      })
      expect(merged.status).toBe(201)
    })
  })

  describe('the audit log', () => {
    it('comes in pages, newest first, and by author, action and time', async () => {
      const node = await startEnforced()
      await node.ask('PUT /admin/members', { body: { dimension: 'user', entity: 'u1', tier: 'a' } })
      const pages = await allItems(node, '/admin/audit', 3)
      const records = pages.flat() as readonly { number: number; action: string; by: string }[]
      expect(pages.map((page) => page.length)).toEqual([3, 3, 1])
      expect(records.map(({ action }) => action)).toEqual([
        'member.put',
        'version.stage',
        'version.create',
        ...Array.from({ length: 4 }, () => 'api-key.create'),
      ])
      expect(records.map(({ number }) => number)).toEqual([7, 6, 5, 4, 3, 2, 1])
      const by = itemsOf(await node.ask('GET /admin/audit?by=the%20admin'))
      expect(by.map(({ action }) => action)).toEqual(['member.put', 'version.stage', 'version.create'])
      expect(itemsOf(await node.ask('GET /admin/audit?action=version.stage'))).toMatchObject([
        { target: 'version 1', before: { stage: 'draft' }, after: { stage: 'enforce' } },
      ])
      expect(itemsOf(await node.ask('GET /admin/audit?since=9999999999999'))).toEqual([])
      expect((await node.ask('GET /admin/audit?since=yesterday')).status).toBe(400)
    })
  })
}
