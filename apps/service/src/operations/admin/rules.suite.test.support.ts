import type { Explanation } from '@sluice/contract'
import { describe, expect, it } from 'vitest'
import { AdminNode, allItems, itemsOf, startWithKeys, wrongPaths } from './admin-node.test.support.ts'
import type { TestDatabases } from './database.test.support.ts'

/** The rules of the example in the documentation. */
const DATA_RULES = [
  { dimension: 'user', limit: 1000, window: '1m' },
  { dimension: 'apiKey', limit: 10_000, window: '1h' },
  { dimension: 'ip', limit: 100, window: '1s' },
]

const ORDERS = { resource: '/orders', rules: [{ dimension: 'user', limit: 2, window: '1m' }] }

/** What the admin API promises about the parts of the rule set. */
export function describeRules(databases: TestDatabases): void {
  const start = async (): Promise<AdminNode> => await startWithKeys(await (await databases.create())())

  describe('rules', () => {
    it('are put for a resource, in force when that is answered, and read again', async () => {
      const node = await start()
      expect(await node.ask('GET /admin/ratelimits')).toMatchObject({ body: { items: [], version: 0 }, etag: '"0"' })
      const put = await node.ask('PUT /admin/ratelimits', { body: { resource: '/api/v1/data', rules: DATA_RULES } })
      expect(put).toMatchObject({ status: 200, etag: '"1"' })
      expect(put.body).toEqual({ resource: '/api/v1/data', rules: DATA_RULES, version: 1 })
      expect(node.admitted(200, { resource: '/api/v1/data', ip: '192.0.2.1' })).toBe(100)
      const read = await node.ask('GET /admin/ratelimits')
      expect(read.body).toEqual({ items: [{ resource: '/api/v1/data', rules: DATA_RULES }], version: 1 })
      expect(read.etag).toBe('"1"')
    })

    it('take the place of all rules of that resource, however it is spelled, and of no others', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: { resource: '/orders/:id', rules: DATA_RULES } })
      await node.ask('PUT /admin/ratelimits', { body: ORDERS })
      const [rule] = ORDERS.rules
      const put = await node.ask('PUT /admin/ratelimits', { body: { resource: '/orders/:order', rules: [rule] } })
      expect(put.body['replaced']).toEqual(DATA_RULES)
      const { body } = await node.ask('GET /admin/ratelimits')
      expect(body['items']).toEqual([ORDERS, { resource: '/orders/:order', rules: [rule] }])
    })

    it('are found by their resource', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: { resource: '/orders/:id', rules: DATA_RULES } })
      await node.ask('PUT /admin/ratelimits', { body: ORDERS })
      const found = await node.ask('GET /admin/ratelimits?resource=%2Forders%2F%3Aother')
      expect(itemsOf(found)).toEqual([{ resource: '/orders/:id', rules: DATA_RULES }])
      expect(itemsOf(await node.ask('GET /admin/ratelimits?resource=%2Fnothing'))).toEqual([])
    })

    it('are removed with their resource', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: ORDERS })
      expect(node.admitted(5, { resource: '/orders', user: 'u1' })).toBe(2)
      const removed = await node.ask('DELETE /admin/ratelimits?resource=%2Forders')
      expect([removed.status, removed.etag, removed.text]).toEqual([204, '"2"', ''])
      expect(node.admitted(5, { resource: '/orders', user: 'u1' })).toBe(5)
      expect((await node.ask('DELETE /admin/ratelimits?resource=%2Forders')).status).toBe(404)
      expect((await node.ask('DELETE /admin/ratelimits')).status).toBe(400)
      expect((await node.ask('GET /admin/ratelimits')).etag).toBe('"2"')
    })

    it('come in pages', async () => {
      const node = await start()
      for (const name of ['c', 'a', 'b', 'e', 'd']) {
        await node.ask('PUT /admin/ratelimits', { body: { ...ORDERS, resource: `/${name}` } })
      }
      const pages = await allItems(node, '/admin/ratelimits', 2)
      expect(pages.map((page) => page.map((item) => (item as { resource: string }).resource))).toEqual([
        ['/a', '/b'],
        ['/c', '/d'],
        ['/e'],
      ])
      const gone = await node.ask('GET /admin/ratelimits?after=bm90aGluZw')
      expect([gone.status, wrongPaths(gone)]).toEqual([400, ['?after']])
      expect((await node.ask('GET /admin/ratelimits?limit=0')).status).toBe(400)
      expect((await node.ask('GET /admin/ratelimits?limit=1001')).status).toBe(400)
      expect((await node.ask('GET /admin/ratelimits?page=2')).status).toBe(400)
    })

    it('are rejected as a whole with everything that is wrong, and nothing is changed', async () => {
      const node = await start()
      const other = { ...ORDERS, resource: '/other' }
      await node.ask('PUT /admin/ratelimits', { body: other })
      const wrong = await node.ask('PUT /admin/ratelimits', {
        body: {
          resource: '/orders',
          rules: [
            { dimension: 'user', limit: 5, window: '1m', name: 'twice' },
            { dimension: 'ip', limit: 5, window: '1m', name: 'twice' },
            { dimension: 'tenant', limit: 5, window: '0s' },
          ],
        },
      })
      expect(wrong).toMatchObject({ status: 422, body: { code: 'SLUICE_HTTP_INVALID_RULE_SET' } })
      expect(wrongPaths(wrong)).toEqual(['/rules/1/name', '/rules/2/window'])
      expect(wrong.body['errors']).toMatchObject([{ expected: expect.stringContaining('/rules/0 is "twice"') }, {}])
      const pattern = await node.ask('PUT /admin/ratelimits', { body: { ...ORDERS, resource: '/a/:' } })
      expect([pattern.status, wrongPaths(pattern)]).toEqual([422, ['/resource']])
      expect((await node.ask('GET /admin/ratelimits')).body).toEqual({ items: [other], version: 1 })
    })

    it('are rejected with paths into the body; problems elsewhere are marked', async () => {
      const node = await start()
      const rule = { dimension: 'user', limit: 5, window: '1m' }
      const named = { resource: '/other', rules: [{ ...rule, name: 'mine' }] }
      await node.ask('PUT /admin/ratelimits', { body: named })
      const put = async (...rules: object[]): Promise<unknown> =>
        (await node.ask('PUT /admin/ratelimits', { body: { resource: '/orders', rules } })).body['errors']
      expect(await put(rule, rule)).toMatchObject([
        { path: '/rules/1', received: 'for the same resource, dimension and method as /rules/0' },
      ])
      const taken = 'a name of its own: /rules/0 of the enforced rules is "mine"'
      expect(await put({ ...rule, name: 'mine' })).toMatchObject([{ path: '/rules/0/name', expected: taken }])
    })

    it.each<[string, unknown, string]>([
      ['a field that is unknown', { ...ORDERS, limits: 1 }, '/limits'],
      ['a field of a rule that is unknown', { ...ORDERS, rules: [{ ...ORDERS.rules[0], max: 1 }] }, '/rules/0/max'],
      ['no rules', { resource: '/orders', rules: [] }, '/rules'],
      ['no resource', { rules: ORDERS.rules }, '/resource'],
      ['a list', [], ''],
    ])('are rejected with %s', async (_title, body, path) => {
      const wrong = await (await start()).ask('PUT /admin/ratelimits', { body })
      expect(wrong).toMatchObject({ status: 400, body: { code: 'SLUICE_HTTP_INVALID_REQUEST' } })
      expect(wrongPaths(wrong)).toEqual([path])
    })

    it('are not changed by who has seen another version', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: ORDERS, ifMatch: '"0"' })
      const other = { ...ORDERS, resource: '/other' }
      for (const ifMatch of ['"0"', '"7"', 'W/"1"', '"one"', '1']) {
        const stale = await node.ask('PUT /admin/ratelimits', { body: other, ifMatch })
        expect([ifMatch, stale.status, stale.body['code']]).toEqual([ifMatch, 412, 'SLUICE_HTTP_PRECONDITION_FAILED'])
        expect((await node.ask('DELETE /admin/ratelimits?resource=%2Forders', { ifMatch })).status).toBe(412)
      }
      expect((await node.ask('PUT /admin/ratelimits', { body: other, ifMatch: '*' })).status).toBe(412)
      expect((await node.ask('PUT /admin/ratelimits', { body: ORDERS, ifMatch: '*' })).etag).toBe('"2"')
      expect((await node.ask('PUT /admin/ratelimits', { body: other, ifMatch: '"2"' })).etag).toBe('"3"')
    })

    it('of two editors who saw the same are changed by one', async () => {
      const open = await databases.create()
      const [one, other] = [await startWithKeys(await open()), await AdminNode.start({ config: await open() })]
      other.token = one.token
      await one.ask('PUT /admin/ratelimits', { body: ORDERS })
      await other.follower.refresh()
      for (let round = 1; round <= 5; round++) {
        const ifMatch = `"${round}"`
        const answers = await Promise.all(
          [one, other].map((node, index) =>
            node.ask('PUT /admin/ratelimits', { body: { ...ORDERS, resource: `/editor-${index}` }, ifMatch }),
          ),
        )
        expect(answers.map(({ status }) => status).sort()).toEqual([200, 412])
        expect((await one.ask('GET /admin/ratelimits')).etag).toBe(`"${round + 1}"`)
      }
    })

    it('of many editors who do not look are changed by all, one after the other', async () => {
      const node = await start()
      const resources = Array.from({ length: 8 }, (_, index) => `/editor-${index}`)
      const answers = await Promise.all(
        resources.map((resource) => node.ask('PUT /admin/ratelimits', { body: { ...ORDERS, resource } })),
      )
      expect(answers.map(({ status }) => status)).toEqual(resources.map(() => 200))
      const { body } = await node.ask('GET /admin/ratelimits')
      expect(body).toMatchObject({ version: 8, items: resources.map((resource) => ({ resource })) })
    })
  })

  describe.each([
    {
      path: '/admin/tiers',
      first: { name: 'premium', multiplier: 10 },
      changed: { name: 'premium', multiplier: 3, burst: 5 },
      wrong: { name: 'premium', rules: [{ resource: '/a', dimension: 'user', limit: 1, window: '0s' }] },
      wrongPath: '/rules/0/window',
    },
    {
      path: '/admin/exemptions',
      first: { name: 'health', match: { resource: '/health' } },
      changed: { name: 'health', match: { resource: '/healthz', methods: ['GET'] } },
      wrong: { name: 'health', match: { cidrs: ['10.0.0.0/40'] } },
      wrongPath: '/match/cidrs/0',
    },
    {
      path: '/admin/deny-list',
      first: { name: 'scrapers', match: { cidrs: ['192.0.2.0/24'] } },
      changed: { name: 'scrapers', match: { cidrs: ['192.0.2.0/25'] }, expiresAt: 1_900_000_000_000 },
      wrong: { name: 'scrapers', match: { cidrs: ['192.0.2.0/40'] } },
      wrongPath: '/match/cidrs/0',
    },
  ])('parts of the rule set at $path', ({ path, first, changed, wrong, wrongPath }) => {
    it('are put, listed with the version as ETag, changed where they stand, and removed', async () => {
      const node = await start()
      const put = await node.ask(`PUT ${path}/${first.name}`, { body: first })
      expect(put).toMatchObject({ status: 200, etag: '"1"', body: { entry: first, version: 1 } })
      const last = { ...first, name: 'last' }
      await node.ask(`PUT ${path}/last`, { body: last, ifMatch: '"1"' })
      expect(put.body).not.toHaveProperty('replaced')
      const again = await node.ask(`PUT ${path}/${first.name}`, { body: changed, ifMatch: '*' })
      expect(again.body['replaced']).toEqual(first)
      const listed = await node.ask(`GET ${path}`)
      expect([listed.etag, listed.body]).toEqual(['"3"', { items: [changed, last], version: 3 }])
      const removed = await node.ask(`DELETE ${path}/${first.name}`)
      expect([removed.status, removed.etag]).toEqual([204, '"4"'])
      expect(itemsOf(await node.ask(`GET ${path}`))).toEqual([last])
      expect((await node.ask(`DELETE ${path}/${first.name}`)).status).toBe(404)
    })

    it('take their name from the path when the body has none', async () => {
      const node = await start()
      const { name, ...nameless } = first
      const put = await node.ask(`PUT ${path}/${name}`, { body: nameless })
      expect([put.status, put.body['entry']]).toEqual([200, first])
      expect(itemsOf(await node.ask(`GET ${path}`))).toEqual([first])
      const badName = await node.ask(`PUT ${path}/${'x'.repeat(300)}`, { body: nameless })
      expect(badName.status).toBe(400)
    })

    it('come in pages, in the order in which they count', async () => {
      const node = await start()
      for (const name of ['z', 'a', 'm']) await node.ask(`PUT ${path}/${name}`, { body: { ...first, name } })
      const pages = await allItems(node, path, 2)
      expect(pages.map((page) => page.map((item) => (item as { name: string }).name))).toEqual([['z', 'a'], ['m']])
    })

    it('are rejected when they are of another name, unknown or meaningless', async () => {
      const node = await start()
      const misnamed = await node.ask(`PUT ${path}/other`, { body: first })
      expect([misnamed.status, wrongPaths(misnamed)]).toEqual([400, ['/name']])
      const unknown = await node.ask(`PUT ${path}/${first.name}`, { body: { ...first, extra: 1 } })
      expect([unknown.status, wrongPaths(unknown)]).toEqual([400, ['/extra']])
      await node.ask(`PUT ${path}/other`, { body: { ...first, name: 'other' } })
      const meaningless = await node.ask(`PUT ${path}/${first.name}`, { body: wrong })
      expect([meaningless.status, wrongPaths(meaningless)]).toEqual([422, [wrongPath]])
      expect((await node.ask(`PUT ${path}/${first.name}`, { body: first, ifMatch: '*' })).status).toBe(412)
      expect((await node.ask(`PUT ${path}/${first.name}`, { body: first, ifMatch: '"3"' })).status).toBe(412)
      expect((await node.ask(`DELETE ${path}/${first.name}`, { ifMatch: '"3"' })).status).toBe(412)
      expect(itemsOf(await node.ask(`GET ${path}`))).toHaveLength(1)
    })
  })

  describe('tiers, exemptions and deny list', () => {
    it('hold from the answer on', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: ORDERS })
      await node.ask('PUT /admin/tiers/premium', { body: { name: 'premium', multiplier: 3 } })
      await node.ask('PUT /admin/members', { body: { dimension: 'user', entity: 'u1', tier: 'premium' } })
      expect(node.admitted(9, { resource: '/orders', user: 'u1' })).toBe(6)
      await node.ask('PUT /admin/exemptions/own', { body: { name: 'own', match: { cidrs: ['10.0.0.0/8'] } } })
      expect(node.admitted(9, { resource: '/orders', user: 'u2', ip: '10.1.2.3' })).toBe(9)
      await node.ask('PUT /admin/deny-list/bad', { body: { name: 'bad', match: { cidrs: ['10.1.0.0/16'] } } })
      expect(node.admitted(9, { resource: '/orders', user: 'u2', ip: '10.1.2.3' })).toBe(0)
    })
  })

  describe('token buckets', () => {
    it('may hold a fraction of a token', async () => {
      const node = await start()
      const rules = [{ dimension: 'user', algorithm: 'token-bucket', capacity: 2.5, refillPerSecond: 1 }]
      expect((await node.ask('PUT /admin/ratelimits', { body: { resource: '/x', rules } })).status).toBe(200)
      const call = { resource: '/x', user: 'u1' }
      expect(node.admitted(5, call)).toBe(2)
      node.clock.advance(500)
      // Half a token was left, and half a second brings the other half.
      expect(node.admitted(5, call)).toBe(1)
    })

    it('roll unused tokens over to the next window, up to twice the capacity', async () => {
      const node = await start()
      const bucket = { algorithm: 'token-bucket', capacity: 10, refillPerSecond: 10, rollover: true }
      const body = { resource: '/x', rules: [{ dimension: 'user', ...bucket }] }
      expect(await node.ask('PUT /admin/ratelimits', { body })).toMatchObject({
        status: 200,
        body: { rules: [bucket] },
      })
      const call = { resource: '/x', user: 'u1' }
      expect(node.admitted(1, call)).toBe(1)
      // A tenth of a second fills the bucket again. A window, which is the second of a full refill, brings as much once
      // more.
      node.clock.advance(1100)
      expect(node.admitted(50, call)).toBe(20)
    })
  })

  describe('usage', () => {
    it('tells how the counters of a caller stand, and charges nothing', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: { resource: '/api/v1/data', rules: DATA_RULES } })
      node.admitted(477, { resource: '/api/v1/data', user: 'user-123' })
      const path = '/admin/ratelimits/usage?userId=user-123&resource=%2Fapi%2Fv1%2Fdata'
      for (const answer of [await node.ask(`GET ${path}`), await node.ask(`GET ${path}`)]) {
        expect(answer.body).toMatchObject({
          version: 1,
          usage: [
            {
              resource: '/api/v1/data',
              dimension: 'user',
              entity: 'user-123',
              counters: [{ limit: 1000, used: 477, remaining: 523, blockedUntil: null }],
            },
          ],
        })
      }
    })

    it('says when a limit is full again as a check does, in usage and explain', async () => {
      const node = await start()
      const rules = [{ dimension: 'user', limit: 1, window: '1m', penalty: { after: 1, within: '1m', block: '1h' } }]
      await node.ask('PUT /admin/ratelimits', { body: { resource: '/data', rules } })
      const call = { resource: '/data', user: 'u1' }
      expect(node.admitted(1, call)).toBe(1)
      const { body: explained } = await node.ask('POST /admin/explain', { body: call })
      const { decision, rules: explainedRules } = explained as unknown as Explanation
      const [counter] = explainedRules[0]!.counters
      expect(counter).toEqual({ limit: 1, used: 1, remaining: 0, resetAt: decision.resetAt, blockedUntil: null })
      expect(decision.resetAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      const path = 'GET /admin/ratelimits/usage?user=u1&resource=/data'
      expect((await node.ask(path)).body['usage']).toMatchObject([{ counters: [counter] }])
      expect(node.admitted(2, call)).toBe(0)
      expect((await node.ask(path)).body['usage']).toMatchObject([
        { counters: [{ resetAt: decision.resetAt, blockedUntil: expect.stringMatching(/^\d{4}-.*:\d\dZ$/) }] },
      ])
    })

    it('is found by descriptor', async () => {
      const node = await start()
      const rules = [
        { dimension: 'model', limit: 10, window: '1m' },
        { dimension: 'user+model', limit: 5, window: '1m' },
      ]
      await node.ask('PUT /admin/ratelimits', { body: { resource: '/completions', rules } })
      node.admitted(3, { resource: '/completions', user: 'u1', descriptors: { model: 'large' } })
      const usageOf = async (query: string): Promise<unknown> => {
        const { body } = await node.ask(`GET /admin/ratelimits/usage?${query}`)
        const usage = body['usage'] as readonly { dimension: string; counters: readonly { used: number }[] }[]
        return usage.map(({ dimension, counters }) => [dimension, counters[0]!.used])
      }
      const large = `descriptors=${encodeURIComponent('{"model":"large"}')}`
      expect(await usageOf(large)).toEqual([['model', 3]])
      expect(await usageOf(`${large}&user=u1`)).toEqual([
        ['model', 3],
        ['user+model', 3],
      ])
      expect(await usageOf(`descriptors=${encodeURIComponent('{"model":"small"}')}`)).toEqual([['model', 0]])
    })

    it('takes either name of an identity, and no two that disagree', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: ORDERS })
      const usageOf = async (query: string): Promise<unknown> =>
        (await node.ask(`GET /admin/ratelimits/usage?${query}`)).body['usage']
      node.admitted(1, { resource: '/orders', user: 'u1' })
      expect(await usageOf('user=u1')).toMatchObject([{ entity: 'u1', counters: [{ used: 1 }] }])
      expect(await usageOf('userId=u1')).toEqual(await usageOf('user=u1'))
      expect(await usageOf('userId=u1&user=u1')).toEqual(await usageOf('user=u1'))
      const twice = await node.ask('GET /admin/ratelimits/usage?user=u1&userId=u2')
      expect([twice.status, wrongPaths(twice)]).toEqual([400, ['?userId']])
    })

    it('is of all callers named, under all rules without a resource', async () => {
      const node = await start()
      await node.ask('PUT /admin/ratelimits', { body: { resource: '/api/v1/data', rules: DATA_RULES } })
      await node.ask('PUT /admin/ratelimits', { body: ORDERS })
      const { body } = await node.ask('GET /admin/ratelimits/usage?userId=u1&clientIp=192.0.2.1')
      const usage = body['usage'] as readonly { dimension: string; resource: string }[]
      expect(usage.map(({ resource, dimension }) => `${dimension} ${resource}`).sort()).toEqual([
        'ip /api/v1/data',
        'user /api/v1/data',
        'user /orders',
      ])
    })

    it('must name a caller', async () => {
      const node = await start()
      expect((await node.ask('GET /admin/ratelimits/usage')).status).toBe(400)
      const unknown = await node.ask('GET /admin/ratelimits/usage?usr=u1')
      expect([unknown.status, wrongPaths(unknown)]).toEqual([400, ['?usr']])
      const wrong = await node.ask('GET /admin/ratelimits/usage?clientIp=nowhere')
      expect([wrong.status, wrongPaths(wrong)]).toEqual([400, ['?clientIp']])
    })
  })
}
