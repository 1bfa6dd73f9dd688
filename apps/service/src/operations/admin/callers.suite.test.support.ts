import { joinKey } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { AdminNode, allItems, itemsOf, startWithKeys, wrongPaths } from './admin-node.test.support.ts'
import type { TestDatabases } from './database.test.support.ts'

const PER_USER = { resource: '/orders', rules: [{ dimension: 'user', limit: 2, window: '1m' }] }
const PER_IP = { resource: '/orders', rules: [{ dimension: 'ip', limit: 2, window: '1m' }] }

const OVERRIDE = { dimension: 'user', entity: 'u1', resource: '/orders', terms: { limit: 5 } }
const MEMBER = { dimension: 'user', entity: 'u1', tier: 'premium' }

const WHICH_OVERRIDE = '/admin/overrides?dimension=user&entity=u1&resource=%2Forders'

/** What the admin API promises about single callers. */
export function describeCallers(databases: TestDatabases): void {
  const start = async (): Promise<AdminNode> => await startWithKeys(await (await databases.create())())

  describe('overrides', () => {
    it('are put, in force when that is answered, listed, and removed', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: PER_USER })
      const put = await node.ask('PUT /admin/overrides', { body: OVERRIDE })
      expect(put).toMatchObject({ status: 200, body: { entry: OVERRIDE, changedBy: 'the admin' } })
      expect(put.etag).toBe(`"${put.body['revision']}"`)
      expect(node.admitted(9, { resource: '/orders', user: 'u1' })).toBe(5)
      expect(itemsOf(await node.ask('GET /admin/overrides'))).toEqual([put.body])
      expect((await node.ask(`DELETE ${WHICH_OVERRIDE}`)).status).toBe(204)
      expect(itemsOf(await node.ask('GET /admin/overrides'))).toEqual([])
      node.clock.advance(600_000)
      expect(node.admitted(9, { resource: '/orders', user: 'u1' })).toBe(2)
      expect((await node.ask(`DELETE ${WHICH_OVERRIDE}`)).status).toBe(404)
    })

    it('are not changed by who has seen something else', async () => {
      const node = await start()
      const first = await node.ask('PUT /admin/overrides', { body: OVERRIDE, ifMatch: '"0"' })
      const other = { ...OVERRIDE, terms: { limit: 7 } }
      for (const ifMatch of ['"0"', '"999"', 'nothing']) {
        expect((await node.ask('PUT /admin/overrides', { body: other, ifMatch })).status).toBe(412)
        expect((await node.ask(`DELETE ${WHICH_OVERRIDE}`, { ifMatch })).status).toBe(412)
      }
      const absent = { ...OVERRIDE, entity: 'u2' }
      expect((await node.ask('PUT /admin/overrides', { body: absent, ifMatch: '*' })).status).toBe(412)
      const second = await node.ask('PUT /admin/overrides', { body: other, ifMatch: first.etag! })
      expect(second.status).toBe(200)
      expect((await node.ask('PUT /admin/overrides', { body: OVERRIDE, ifMatch: '*' })).status).toBe(200)
      expect((await node.ask(`DELETE ${WHICH_OVERRIDE}`, { ifMatch: second.etag! })).status).toBe(412)
      expect((await node.ask(`DELETE ${WHICH_OVERRIDE}`, { ifMatch: '*' })).status).toBe(204)
      expect((await node.ask(`DELETE ${WHICH_OVERRIDE}`, { ifMatch: '*' })).status).toBe(412)
    })

    it('are put only if none exists, when If-Match says so', async () => {
      const node = await start()
      const rule = { dimension: 'user', limit: 1, window: '1m' }
      const puts: readonly (readonly [target: string, body: object])[] = [
        ['PUT /admin/overrides', OVERRIDE],
        ['PUT /admin/members', MEMBER],
        ['PUT /admin/blocks', { dimension: 'user', entity: 'u9', duration: '1h' }],
        ['PUT /admin/ratelimits', { resource: '/orders', rules: [rule] }],
        ['PUT /admin/ratelimits', { resource: '/other', rules: [rule] }],
        ['PUT /admin/tiers/premium', { name: 'premium', multiplier: 2 }],
        ['PUT /admin/exemptions/health', { name: 'health', match: { resource: '/health' } }],
        ['PUT /admin/deny-list/bad', { name: 'bad', match: { cidrs: ['192.0.2.0/24'] } }],
      ]
      for (const expected of [200, 412]) {
        for (const [target, body] of puts) {
          expect([target, (await node.ask(target, { body, ifNoneMatch: '*' })).status]).toEqual([target, expected])
        }
      }
      await node.ask('PUT /admin/incident', { body: { active: true } })
      expect((await node.ask('PUT /admin/incident', { body: { active: false }, ifNoneMatch: '*' })).status).toBe(412)
      expect((await node.ask('PUT /admin/overrides', { body: OVERRIDE, ifNoneMatch: '"1"' })).status).toBe(412)
    })

    it('of two editors who saw the same are changed by one', async () => {
      const open = await databases.create()
      const one = await startWithKeys(await open())
      const other = await AdminNode.start({ config: await open() })
      other.token = one.token
      let { etag } = await one.ask('PUT /admin/overrides', { body: OVERRIDE })
      for (let round = 0; round < 5; round++) {
        const answers = await Promise.all(
          [one, other].map((node, index) =>
            node.ask('PUT /admin/overrides', { body: { ...OVERRIDE, terms: { limit: index } }, ifMatch: etag! }),
          ),
        )
        expect(answers.map(({ status }) => status).sort()).toEqual([200, 412])
        etag = answers.find(({ status }) => status === 200)!.etag
      }
    })

    it('do not end before they begin, and neither do members, entries of the deny list and incidents', async () => {
      const node = await start()
      const nowMs = node.clock.nowMicros() / 1000
      // In seconds it would be 1970.
      for (const expiresAt of [Math.floor(nowMs / 1000), nowMs]) {
        const late = { ...OVERRIDE, expiresAt }
        const overrides = [OVERRIDE, late, { ...OVERRIDE, expiresAt: nowMs + 1 }, late]
        const members = [{ ...MEMBER, expiresAt }]
        const entry = { name: 'bad', match: { cidrs: ['192.0.2.0/24'] }, expiresAt }
        const wrong = [
          await node.ask('PUT /admin/overrides', { body: late }),
          await node.ask('POST /admin/overrides/bulk', { body: { overrides } }),
          await node.ask('PUT /admin/members', { body: members[0] }),
          await node.ask('POST /admin/members/bulk', { body: { members } }),
          await node.ask('PUT /admin/deny-list/bad', { body: entry }),
          await node.ask('PUT /admin/incident', { body: { active: true, until: expiresAt } }),
        ]
        expect(wrong.map((answer) => [answer.status, ...wrongPaths(answer)])).toEqual([
          [400, '/expiresAt'],
          [400, '/overrides/1/expiresAt', '/overrides/3/expiresAt'],
          [400, '/expiresAt'],
          [400, '/members/0/expiresAt'],
          [400, '/expiresAt'],
          [400, '/until'],
        ])
        expect(wrong[0]!.text).toContain('an instant in the future, in milliseconds since 1970')
      }
      const later = { ...OVERRIDE, expiresAt: nowMs + 1 }
      expect((await node.ask('PUT /admin/overrides', { body: later })).status).toBe(200)
    })

    it('are rejected with everything that is wrong', async () => {
      const node = await start()
      const form = await node.ask('PUT /admin/overrides', { body: { ...OVERRIDE, terms: { limits: 5 }, by: 'me' } })
      expect([form.status, wrongPaths(form)]).toEqual([400, expect.arrayContaining(['/terms/limits', '/by'])])
      const meaning = await node.ask('PUT /admin/overrides', { body: { ...OVERRIDE, resource: '/a/:' } })
      expect([meaning.status, wrongPaths(meaning)]).toEqual([422, ['/resource']])
      expect((await node.ask('DELETE /admin/overrides?dimension=user&entity=u1')).status).toBe(400)
    })

    it('of a resource are one, however it is spelled, also to a node that starts later', async () => {
      const open = await databases.create()
      const node = await startWithKeys(await open())
      await node.ask('PUT /admin/ratelimits', { body: PER_USER })
      const limitOf = (of: AdminNode): number => of.engine.check({ resource: '/orders', user: 'u1', cost: 0 }).limit
      const started = async (): Promise<AdminNode> => await AdminNode.start({ config: await open(), clock: node.clock })
      const first = await node.ask('PUT /admin/overrides', { body: OVERRIDE })
      expect(first.body).not.toHaveProperty('replaced')
      const other = { ...OVERRIDE, resource: '/Orders/', terms: { limit: 7 } }
      const second = await node.ask('PUT /admin/overrides', { body: other, ifMatch: first.etag! })
      expect(second).toMatchObject({ status: 200, body: { entry: other, replaced: first.body } })
      expect([limitOf(node), limitOf(await started())]).toEqual([7, 7])
      expect(itemsOf(await node.ask('GET /admin/overrides'))).toMatchObject([{ entry: other }])
      expect((await node.ask(`DELETE ${WHICH_OVERRIDE}`)).status).toBe(204)
      expect([limitOf(node), limitOf(await started())]).toEqual([2, 2])
      const bulk = { overrides: [OVERRIDE, other] }
      expect((await node.ask('POST /admin/overrides/bulk', { body: bulk })).status).toBe(200)
      expect([limitOf(node), limitOf(await started())]).toEqual([7, 7])
    })

    it('of an address are one, however it is spelled', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: PER_IP })
      const body = { ...OVERRIDE, dimension: 'ip', entity: '2001:DB8:0:1:0:0:0:7' }
      expect((await node.ask('PUT /admin/overrides', { body })).body).toMatchObject({
        entry: { entity: '2001:db8:0:1::/64' },
      })
      await node.ask('PUT /admin/overrides', { body: { ...body, entity: '2001:db8:0:1::8', terms: { limit: 4 } } })
      expect(itemsOf(await node.ask('GET /admin/overrides'))).toHaveLength(1)
      const listed = await node.ask('GET /admin/overrides?dimension=ip&entity=2001:db8:0:1::9')
      expect(itemsOf(listed)).toMatchObject([{ entry: { terms: { limit: 4 } } }])
      expect(node.admitted(9, { resource: '/orders', ip: '2001:db8:0:1::a' })).toBe(4)
      const which = 'dimension=ip&entity=2001:db8:0:1:ffff::&resource=%2Forders'
      expect((await node.ask(`DELETE /admin/overrides?${which}`)).status).toBe(204)
      expect(itemsOf(await node.ask('GET /admin/overrides'))).toEqual([])
    })

    it('of a joint dimension are one, in whatever order it is named', async () => {
      const node = await start()
      for (const dimension of ['user+tenant', 'tenant+user']) {
        await node.ask('PUT /admin/overrides', { body: { ...OVERRIDE, dimension, entity: joinKey(['acme', 'u1']) } })
      }
      expect(itemsOf(await node.ask('GET /admin/overrides'))).toMatchObject([{ entry: { dimension: 'tenant+user' } }])
      const which = new URLSearchParams({
        ...OVERRIDE,
        dimension: 'user+tenant',
        entity: joinKey(['acme', 'u1']),
        terms: '',
      })
      which.delete('terms')
      expect((await node.ask(`DELETE /admin/overrides?${which}`)).status).toBe(204)
    })

    it('come in pages, of all callers or of one', async () => {
      const node = await start()
      const overrides = ['u3', 'u1', 'u2'].flatMap((entity) =>
        ['/a', '/b'].map((resource) => ({ ...OVERRIDE, entity, resource })),
      )
      const bulk = await node.ask('POST /admin/overrides/bulk', { body: { overrides, note: 'contracts' } })
      expect([bulk.status, bulk.body]).toEqual([200, { count: 6 }])
      const pages = await allItems(node, '/admin/overrides', 4)
      expect(pages.map((page) => page.length)).toEqual([4, 2])
      const names = pages.flat().map((item) => (item as { entry: typeof OVERRIDE }).entry)
      expect(names.map(({ entity, resource }) => entity + resource)).toEqual([
        'u1/a',
        'u1/b',
        'u2/a',
        'u2/b',
        'u3/a',
        'u3/b',
      ])
      const ofOne = await allItems(node, '/admin/overrides?dimension=user&entity=u2', 1)
      expect(ofOne.map((page) => page.length)).toEqual([1, 1])
    })

    it('are put in bulk all or not at all, and the answer says which one is wrong', async () => {
      const node = await start()
      const overrides = [OVERRIDE, { ...OVERRIDE, entity: 'u2', resource: '/a/:' }]
      const wrong = await node.ask('POST /admin/overrides/bulk', { body: { overrides } })
      expect([wrong.status, wrongPaths(wrong)]).toEqual([422, ['/overrides/1/resource']])
      expect(itemsOf(await node.ask('GET /admin/overrides'))).toEqual([])
    })
  })

  describe('members', () => {
    it('are put, listed, changed under If-Match, and removed', async () => {
      const node = await start()
      const put = await node.ask('PUT /admin/members', { body: MEMBER, ifMatch: '"0"' })
      expect(put).toMatchObject({ status: 200, body: { entry: MEMBER, changedBy: 'the admin' } })
      expect((await node.ask('PUT /admin/members', { body: MEMBER, ifMatch: '"0"' })).status).toBe(412)
      const changed = { ...MEMBER, tier: 'gold' }
      expect((await node.ask('PUT /admin/members', { body: changed, ifMatch: put.etag! })).status).toBe(200)
      expect(itemsOf(await node.ask('GET /admin/members'))).toMatchObject([{ entry: changed }])
      expect((await node.ask('DELETE /admin/members?dimension=user&entity=u1')).status).toBe(204)
      expect((await node.ask('DELETE /admin/members?dimension=user&entity=u1')).status).toBe(404)
    })

    it('must name a declared tier once there are tiers', async () => {
      const node = await start()
      expect((await node.ask('PUT /admin/tiers/gold', { body: { multiplier: 2 } })).status).toBe(200)
      const wrong = await node.ask('PUT /admin/members', { body: MEMBER })
      expect([wrong.status, wrongPaths(wrong)]).toEqual([400, ['/tier']])
      expect(JSON.stringify(wrong.body)).toContain('a tier of the rules: gold')
      const gold = { ...MEMBER, tier: 'gold' }
      const bulk = await node.ask('POST /admin/members/bulk', { body: { members: [gold, MEMBER] } })
      expect([bulk.status, wrongPaths(bulk)]).toEqual([400, ['/members/1/tier']])
      expect(itemsOf(await node.ask('GET /admin/members'))).toEqual([])
      expect((await node.ask('PUT /admin/members', { body: gold })).status).toBe(200)
    })

    it('are put in bulk', async () => {
      const node = await start()
      const members = ['u1', 'u2', 'u3'].map((entity) => ({ ...MEMBER, entity }))
      expect((await node.ask('POST /admin/members/bulk', { body: { members } })).body).toEqual({ count: 3 })
      expect((await allItems(node, '/admin/members', 2)).map((page) => page.length)).toEqual([2, 1])
      const wrong = await node.ask('POST /admin/members/bulk', { body: { members: [{ ...MEMBER, dimension: 'ip' }] } })
      expect([wrong.status, wrongPaths(wrong)]).toEqual([400, ['/members/0/dimension']])
    })
  })

  describe('blocks', () => {
    const BLOCK = { dimension: 'user', entity: 'u1', duration: '1h', reason: 'abuse report 4711' }

    it('deny a caller on all nodes from the answer on, until they expire', async () => {
      const open = await databases.create()
      const node = await startWithKeys(await open())
      const other = await AdminNode.start({ config: await open(), clock: node.clock })
      const put = await node.ask('PUT /admin/blocks', { body: BLOCK })
      const until = node.clock.nowMicros() / 1000 + 3_600_000
      expect(put.body).toMatchObject({
        entry: { dimension: 'user', entity: 'u1', until, strikes: 1, forgottenAt: until, reason: 'abuse report 4711' },
        changedBy: 'the admin',
      })
      expect(node.engine.check({ resource: '/', user: 'u1' }).reason).toBe('blocked')
      await other.follower.refresh()
      expect(other.engine.check({ resource: '/', user: 'u1' }).reason).toBe('blocked')
      expect(itemsOf(await node.ask('GET /admin/blocks'))).toEqual([put.body])
      node.clock.advance(3_599_999)
      expect(node.admitted(1, { resource: '/', user: 'u1' })).toBe(0)
      node.clock.advance(1)
      expect(node.admitted(1, { resource: '/', user: 'u1' })).toBe(1)
    })

    it('count as one more strike until the last is forgotten', async () => {
      const node = await start()
      const strikes = async (): Promise<unknown> =>
        ((await node.ask('PUT /admin/blocks', { body: BLOCK })).body['entry'] as { strikes: number }).strikes
      expect([await strikes(), await strikes()]).toEqual([1, 2])
      node.clock.advance(3_600_000)
      expect(await strikes()).toBe(1)
    })

    it('are lifted everywhere', async () => {
      const open = await databases.create()
      const node = await startWithKeys(await open())
      const other = await AdminNode.start({ config: await open(), clock: node.clock })
      await node.ask('PUT /admin/blocks', { body: { ...BLOCK, dimension: 'ip', entity: '2001:db8::1' } })
      await other.follower.refresh()
      expect(other.admitted(1, { resource: '/', ip: '2001:db8::2' })).toBe(0)
      expect((await node.ask('DELETE /admin/blocks?dimension=ip&entity=2001:db8::3')).status).toBe(204)
      expect(node.admitted(1, { resource: '/', ip: '2001:db8::2' })).toBe(1)
      await other.follower.refresh()
      expect(other.admitted(1, { resource: '/', ip: '2001:db8::2' })).toBe(1)
      expect(itemsOf(await node.ask('GET /admin/blocks'))).toEqual([])
      expect((await node.ask('DELETE /admin/blocks?dimension=ip&entity=2001:db8::3')).status).toBe(404)
    })

    it('are not changed by who has seen something else', async () => {
      const node = await start()
      const which = 'DELETE /admin/blocks?dimension=user&entity=u1'
      const first = await node.ask('PUT /admin/blocks', { body: BLOCK })
      const second = await node.send('PUT /admin/blocks', { body: BLOCK, ifMatch: first.etag! })
      expect(second.status).toBe(200)
      for (const ifMatch of [first.etag!, '"0"']) {
        expect((await node.send('PUT /admin/blocks', { body: BLOCK, ifMatch })).status).toBe(412)
        expect((await node.send(which, { ifMatch })).status).toBe(412)
      }
      expect(node.admitted(1, { resource: '/', user: 'u1' })).toBe(0)
      expect((await node.send(which, { ifMatch: second.headers.get('etag')! })).status).toBe(204)
    })

    it('of a penalty are lifted with what led to them', async () => {
      const node = await start()
      const penalty = { after: 2, within: '1h', block: '1h' }
      await node.ask('PUT /admin/ratelimits', {
        body: { resource: '/login', rules: [{ dimension: 'user', limit: 1, window: '1s', penalty }] },
      })
      const login = { resource: '/login', user: 'u1' }
      expect(node.admitted(3, login)).toBe(1)
      node.clock.advance(2000)
      expect(node.engine.check(login).reason).toBe('blocked')
      expect((await node.ask('DELETE /admin/blocks?dimension=user&entity=u1')).status).toBe(204)
      expect(node.admitted(2, login)).toBe(1)
      node.clock.advance(2000)
      expect(node.admitted(1, login)).toBe(1)
    })

    it('of a penalty are lifted whatever became of it', async () => {
      const node = await start()
      const rule = { dimension: 'user', limit: 1, window: '1s' }
      const penalty = { after: 2, within: '1h', block: '1h' }
      const put = (rules: readonly object[]): Promise<unknown> =>
        node.ask('PUT /admin/ratelimits', { body: { resource: '/login', rules } })
      await put([{ ...rule, penalty }])
      const login = { resource: '/login', user: 'u1' }
      expect(node.admitted(3, login)).toBe(1)
      await put([{ ...rule, limit: 1000 }])
      expect(node.engine.check(login).reason).toBe('blocked')
      expect((await node.ask('DELETE /admin/blocks?dimension=user&entity=u1')).status).toBe(204)
      expect(node.engine.check(login).reason).toBe('allowed')
      expect((await node.ask('DELETE /admin/blocks?dimension=user&entity=u1')).status).toBe(404)
    })

    it('that only the store has are lifted too', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: PER_USER })
      node.store.block('/orders@user', 'user:u1', 3_600_000_000)
      expect(node.engine.check({ resource: '/orders', user: 'u1' }).reason).toBe('blocked')
      expect((await node.ask('DELETE /admin/blocks?dimension=user&entity=u2')).status).toBe(404)
      expect((await node.ask('DELETE /admin/blocks?dimension=user&entity=u1')).status).toBe(204)
      expect(node.engine.check({ resource: '/orders', user: 'u1' }).reason).toBe('allowed')
    })

    it('of a penalty and a joint dimension are listed and lifted on all nodes, in any order of names', async () => {
      const open = await databases.create()
      const node = await startWithKeys(await open())
      const config = await open()
      const other = await AdminNode.start({ config, clock: node.clock })
      const penalty = { after: 2, within: '1h', block: '1h' }
      await node.ask('PUT /admin/ratelimits', {
        body: { resource: '/login', rules: [{ dimension: 'user+tenant', limit: 1, window: '1s', penalty }] },
      })
      await other.follower.refresh()
      const login = { resource: '/login', user: 'u1', tenant: 'acme' }
      expect(other.admitted(3, login)).toBe(1)
      const [block] = other.engine.entries.blocks()
      await config.blocks.put(block!, { name: 'penalty' })
      await node.follower.refresh()
      node.clock.advance(2000)
      for (const { engine } of [node, other]) expect(engine.check(login).reason).toBe('blocked')
      const entity = joinKey(['acme', 'u1'])
      const listed = itemsOf(await node.ask('GET /admin/blocks'))
      expect(listed).toMatchObject([{ entry: { dimension: 'tenant+user', entity, strikes: 1 } }])
      const which = new URLSearchParams({ dimension: 'user+tenant', entity })
      expect((await node.ask(`DELETE /admin/blocks?${which}`)).status).toBe(204)
      await other.follower.refresh()
      // Each node counts on its own here: the block has left the store of the one that made it, too.
      for (const { engine } of [node, other]) expect(engine.check(login).reason).toBe('allowed')
      expect((await node.ask(`DELETE /admin/blocks?${which}`)).status).toBe(404)
    })

    it('that only this node knows of are lifted too', async () => {
      const node = await start()
      node.engine.block('user', 'u1', { duration: '1h' })
      expect((await node.ask('DELETE /admin/blocks?dimension=user&entity=u1')).status).toBe(204)
      expect(node.admitted(1, { resource: '/', user: 'u1' })).toBe(1)
    })

    it('are rejected with a duration or a field that cannot be used', async () => {
      const node = await start()
      for (const [body, path] of [
        [{ ...BLOCK, duration: 'an hour' }, '/duration'],
        [{ ...BLOCK, until: 1 }, '/until'],
      ]) {
        const wrong = await node.ask('PUT /admin/blocks', { body })
        expect([wrong.status, wrongPaths(wrong)]).toEqual([400, [path]])
      }
      expect((await node.ask('PUT /admin/blocks', { body: { ...BLOCK, duration: '0s' } })).status).toBe(400)
      expect((await node.ask('PUT /admin/blocks', { body: { ...BLOCK, duration: '99999w' } })).status).toBe(400)
    })
  })

  describe('the incident switch', () => {
    it('is read, set under If-Match, and in force when that is answered', async () => {
      const node = await start()
      await node.ask('POST /admin/versions', {
        body: {
          ruleSet: { incident: 0.5, rules: [{ resource: '*', dimension: 'user', limit: 4, window: '1m' }] },
          basedOn: 0,
        },
      })
      await node.ask('POST /admin/versions/1/stage', { body: { stage: 'enforce' } })
      const before = await node.ask('GET /admin/incident')
      expect(before.body).toMatchObject({ entry: { active: false } })
      const set = await node.ask('PUT /admin/incident', { body: { active: true }, ifMatch: before.etag! })
      expect(set).toMatchObject({ status: 200, body: { entry: { active: true }, changedBy: 'the admin' } })
      expect(node.admitted(9, { resource: '/', user: 'u1' })).toBe(2)
      const stale = await node.ask('PUT /admin/incident', { body: { active: false }, ifMatch: before.etag! })
      expect(stale.status).toBe(412)
      expect((await node.ask('PUT /admin/incident', { body: { active: false }, ifMatch: '*' })).status).toBe(200)
      expect((await node.ask('PUT /admin/incident', { body: { active: 'yes' } })).status).toBe(400)
      expect(node.admitted(9, { resource: '/', user: 'u2' })).toBe(4)
    })

    it('says how many rules it changes, and what to do where it changes none', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: PER_USER })
      const put = async (active: boolean): Promise<unknown> =>
        (await node.ask('PUT /admin/incident', { body: { active } })).body
      const warning = expect.stringMatching(/^No limit changes: .*Set "incident" .*0\.5/)
      expect(await put(true)).toMatchObject({ entry: { active: true }, affectedRules: 0, warning })
      expect((await node.ask('GET /admin/incident')).body).toMatchObject({ affectedRules: 0, warning })
      const [rule] = PER_USER.rules
      const halved = { ...rule, incident: 0.5 }
      const off = { ...halved, dimension: 'ip', enabled: false }
      const unchanged = { ...rule, dimension: 'tenant', incident: 1 }
      await node.ask('PUT /admin/ratelimits', { body: { ...PER_USER, rules: [halved, off, unchanged] } })
      const effective = await put(true)
      expect(effective).toMatchObject({ affectedRules: 1 })
      expect(effective).not.toHaveProperty('warning')
      await node.ask('PUT /admin/ratelimits', { body: PER_USER })
      expect(await put(false)).not.toHaveProperty('warning')
    })
  })

  describe('reset', () => {
    it('resets the counters of one caller only', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: PER_USER })
      await node.ask('PUT /admin/ratelimits', { body: { ...PER_USER, resource: '/other' } })
      for (const resource of ['/orders', '/other']) {
        for (const user of ['u1', 'u2']) expect(node.admitted(3, { resource, user })).toBe(2)
      }
      const reset = await node.ask('POST /admin/reset', { body: { userId: 'u1', resource: '/orders', note: 'why' } })
      expect([reset.status, reset.body]).toEqual([200, { count: 1 }])
      expect(node.admitted(3, { resource: '/orders', user: 'u1' })).toBe(2)
      expect(node.admitted(3, { resource: '/other', user: 'u1' })).toBe(0)
      expect(node.admitted(3, { resource: '/orders', user: 'u2' })).toBe(0)
    })

    it('gives back units, no more than were used, and names them in the audit log', async () => {
      const node = await start()
      const rules = [{ dimension: 'user', limit: 5, window: '1m' }]
      await node.ask('PUT /admin/ratelimits', { body: { resource: '/orders', rules } })
      const call = { resource: '/orders', user: 'u1' }
      expect(node.admitted(9, call)).toBe(5)
      const body = { userId: 'u1', resource: '/orders', units: 2, note: 'failed imports' }
      const refund = await node.ask('POST /admin/reset', { body })
      expect([refund.status, refund.body]).toEqual([200, { count: 1 }])
      expect(node.admitted(9, call)).toBe(2)
      await node.ask('POST /admin/reset', { body: { ...body, units: 100 } })
      expect(node.admitted(9, call)).toBe(5)
      const audit = await node.ask('GET /admin/audit?action=counters.refund')
      expect(audit.body['items']).toMatchObject([
        { details: { units: 100 } },
        { details: { units: 2, counterCount: 1 } },
      ])
    })

    it('and usage know the limits that a service has of its own', async () => {
      const node = await start()
      const rule = { resource: '*', dimension: 'user', window: '1m' }
      const exemption = { name: 'internal', match: { services: ['billing'] }, rules: [{ ...rule, limit: 3 }] }
      await node.ask('POST /admin/versions', {
        body: { ruleSet: { rules: [{ ...rule, limit: 5 }], exemptions: [exemption] }, basedOn: 0 },
      })
      await node.ask('POST /admin/versions/1/stage', { body: { stage: 'enforce' } })
      const call = { resource: '/x', user: 'u1', service: 'billing' }
      expect(node.admitted(9, call)).toBe(3)
      const asked = await node.ask('GET /admin/ratelimits/usage?userId=u1&service=billing&resource=/x')
      expect(asked.body['usage']).toMatchObject([{ entity: 'u1', counters: [{ limit: 3, used: 3, remaining: 0 }] }])
      const body = { userId: 'u1', service: 'billing', note: 'why' }
      expect((await node.ask('POST /admin/reset', { body })).status).toBe(200)
      expect(node.admitted(9, call)).toBe(3)
      const audit = await node.ask('GET /admin/audit?action=counters.reset')
      expect(audit.body['items']).toMatchObject([{ target: 'user:u1 service:billing' }])
    })

    it('is in the audit log, where a digest stands for an API key', async () => {
      const node = await start()
      const body = {
        userId: 'u1',
        clientIp: '192.0.2.1',
        tenantId: 't1',
        apiKey: 'a secret',
        descriptors: { plan: 'x' },
      }
      await node.ask('POST /admin/reset', { body: { ...body, resource: '/orders', note: 'why' } })
      const { text, body: page } = await node.ask('GET /admin/audit?action=counters.reset')
      expect(page['items']).toMatchObject([
        {
          note: 'why',
          target: expect.stringMatching(/^user:u1 apiKey:[0-9a-f]{16} ip:192\.0\.2\.1 tenant:t1 plan:x \/orders$/),
        },
      ])
      expect(text).not.toContain('a secret')
    })

    it('names in the audit log whose counters it touched, and no others', async () => {
      const node = await start()
      const rule = { window: '1m', limit: 2 }
      await node.ask('PUT /admin/ratelimits', {
        body: {
          resource: '/orders',
          rules: [
            { ...rule, name: 'by-user', dimension: 'user' },
            { ...rule, name: 'by-key', dimension: 'apiKey+tenant' },
          ],
        },
      })
      const other = await node.ask('POST /admin/reset', { body: { userId: 'alice', descriptors: { user: 'bob' } } })
      expect([other.status, wrongPaths(other)]).toEqual([400, ['/descriptors/user']])
      await node.ask('POST /admin/reset', { body: { userId: 'alice tenant:acme', descriptors: { plan: 'x"y' } } })
      await node.ask('POST /admin/reset', { body: { apiKey: 'a secret', tenantId: 'acme', resource: '/orders' } })
      await node.ask('POST /admin/reset', { body: { clientIp: '192.0.2.1' } })
      const { text, body: page } = await node.ask('GET /admin/audit?action=counters.reset')
      const digest = expect.stringMatching(/^[0-9a-f]{16}$/)
      expect(page['items']).toMatchObject([
        { target: 'ip:192.0.2.1', details: { caller: { ip: '192.0.2.1' }, counters: [], counterCount: 0 } },
        {
          target: expect.stringMatching(/^apiKey:[0-9a-f]{16} tenant:acme \/orders$/),
          details: {
            caller: { apiKey: digest, tenant: 'acme' },
            resource: '/orders',
            counters: [{ rule: 'by-key', resource: '/orders', dimension: 'apiKey+tenant', entity: digest }],
            counterCount: 1,
          },
        },
        {
          target: 'user:"alice tenant:acme" plan:"x\\"y"',
          details: {
            caller: { user: 'alice tenant:acme', plan: 'x"y' },
            counters: [{ rule: 'by-user', resource: '/orders', dimension: 'user', entity: 'alice tenant:acme' }],
            counterCount: 1,
          },
        },
      ])
      expect(text).not.toContain('a secret')
    })

    it('says when no rule counts the caller', async () => {
      const node = await start()
      const { status, body } = await node.ask('POST /admin/reset', { body: { tenant: 'acme', resource: '/nowhere' } })
      expect([status, body]).toEqual([200, { count: 0 }])
    })

    it('must name a caller', async () => {
      const node = await start()
      expect((await node.ask('POST /admin/reset', { body: { note: 'all' } })).status).toBe(400)
      const wrong = await node.ask('POST /admin/reset', { body: { usr: 'u1', clientIp: 'x' } })
      expect([wrong.status, wrongPaths(wrong)]).toEqual([400, ['/clientIp', '/usr']])
    })
  })

  describe('explain', () => {
    it('says which rules hold, where their limits come from, and what a check would answer', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: PER_USER })
      await node.ask('PUT /admin/overrides', { body: OVERRIDE })
      node.admitted(1, { resource: '/orders', user: 'u1' })
      const body = { resource: '/orders', userId: 'u1', clientIp: '192.0.2.1' }
      for (const answer of [
        await node.ask('POST /admin/explain', { body }),
        await node.ask('POST /admin/explain', { body }),
      ]) {
        expect(answer.body).toMatchObject({
          version: 1,
          readings: ['/orders'],
          rules: [
            {
              dimension: 'user',
              fate: 'applies',
              entity: 'u1',
              steps: [
                { source: 'rule', limit: 2 },
                { source: 'override', limit: 5 },
              ],
              counters: [{ limit: 5, used: 1, remaining: 4 }],
            },
          ],
          decision: { allowed: true, reason: 'allowed', limit: 5, dimension: 'user', version: 1 },
        })
      }
    })

    it('reports a block, and a call that no rule limits', async () => {
      const node = await start()
      const free = await node.ask('POST /admin/explain', { body: { resource: '/free' } })
      expect(free.body).toMatchObject({ decision: { reason: 'unlimited', limit: null, remaining: null }, rules: [] })
      await node.ask('PUT /admin/blocks', { body: { dimension: 'user', entity: 'u1', duration: '1h' } })
      const blocked = await node.ask('POST /admin/explain', { body: { resource: '/free', userId: 'u1' } })
      expect(blocked.body).toMatchObject({ block: { entity: 'u1' }, decision: { reason: 'blocked', retryAfter: 3600 } })
    })

    it('rejects an invalid request', async () => {
      const wrong = await (await start()).ask('POST /admin/explain', { body: { usr: 'u1' } })
      expect([wrong.status, wrongPaths(wrong)]).toEqual([400, ['/resource', '/usr']])
    })
  })
}
