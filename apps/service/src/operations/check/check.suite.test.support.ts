import type { RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { OpenStore } from './check-api.test.support.ts'
import { perUser, withStore, wrongPaths } from './check-api.test.support.ts'

const ORDER = { userId: 'ann', resource: '/orders' }

/** One rule for each field that says who calls, each for one call a minute. */
const BY_CALLER: RuleSet = {
  rules: [
    { resource: '/by-user', dimension: 'user', limit: 1, window: '1m' },
    { resource: '/by-key', dimension: 'apiKey', limit: 1, window: '1m' },
    { resource: '/by-address', dimension: 'ip', limit: 1, window: '1m' },
    { resource: '/by-tenant', dimension: 'tenant', limit: 1, window: '1m' },
    { resource: '/by-model', dimension: 'model', limit: 1, window: '1m' },
    { resource: '/by-both', dimension: 'tenant+user', limit: 1, window: '1m' },
  ],
}

/** Rules that ask for the fields that do not say who calls. */
const BY_CALL: RuleSet = {
  rules: [
    { resource: '/written', dimension: 'user', methods: ['POST'], limit: 1, window: '1m' },
    { resource: '/abroad', dimension: 'user', limit: 1, window: '1m', regions: { EU: 3 } },
    { resource: '/bytes', dimension: 'user', limit: 10, window: '1m', cost: { descriptor: 'bytes', per: 1024 } },
    { resource: '/tiered', dimension: 'user', limit: 1, window: '1m' },
    { resource: '/guarded', dimension: 'user', limit: 1, window: '1m' },
  ],
  tiers: [{ name: 'premium', multiplier: 3 }],
  exemptions: [
    { name: 'internal', match: { services: ['billing'], resource: '/guarded' } },
    {
      name: 'internal-limited',
      match: { services: ['search'], resource: '/guarded' },
      rules: [{ resource: '*', dimension: 'service', limit: 2, window: '1m' }],
    },
  ],
}

/** The check API on a store: `check`, `peek` and batches. */
export function checkSuite(name: string, open: OpenStore): void {
  describe(`checks ${name}`, () => {
    it('are allowed with every field of the answer and the headers', () =>
      withStore(open, async ({ api }) => {
        expect(await api({ ruleSet: perUser(3) }).post('check', ORDER)).toEqual({
          status: 200,
          headers: {
            'X-RateLimit-Limit': '3',
            'X-RateLimit-Remaining': '2',
            'X-RateLimit-Reset': '1893456060',
            'X-RateLimit-Reset-After': '60',
          },
          body: {
            allowed: true,
            reason: 'allowed',
            limit: 3,
            remaining: 2,
            resetAt: '2030-01-01T00:01:00Z',
            retryAfter: null,
            dimension: 'user',
            rule: '/orders@user',
            decisionId: '1',
            version: 0,
          },
        })
      }))

    it('are denied with every field of the answer and Retry-After, not to be cached', () =>
      withStore(open, async ({ api, clock }) => {
        const checks = api({ ruleSet: perUser(1) })
        checks.engine.use({ enforced: { number: 12, ruleSet: perUser(1) } })
        await checks.post('check', ORDER)
        clock.advance(15_500)
        expect(await checks.post('check', ORDER)).toEqual({
          status: 429,
          headers: {
            'X-RateLimit-Limit': '1',
            'X-RateLimit-Remaining': '0',
            'X-RateLimit-Reset': '1893456060',
            'X-RateLimit-Reset-After': '45',
            'Retry-After': '45',
            'Cache-Control': 'no-store',
          },
          body: {
            allowed: false,
            reason: 'limit',
            limit: 1,
            remaining: 0,
            resetAt: '2030-01-01T00:01:00Z',
            retryAfter: 45,
            dimension: 'user',
            rule: '/orders@user',
            decisionId: '2',
            version: 12,
          },
        })
      }))

    it.each([
      ['userId', '/by-user', 'ann', 'bob'],
      ['apiKey', '/by-key', 'key-1', 'key-2'],
      ['clientIp', '/by-address', '192.0.2.1', '192.0.2.2'],
      ['tenantId', '/by-tenant', 'acme', 'apex'],
      ['descriptors', '/by-model', { model: 'large' }, { model: 'small' }],
    ])('count by %s where the rule does', (field, resource, one, other) =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: BY_CALLER })
        const check = async (value: unknown): Promise<number> =>
          (await checks.post('check', { resource, [field]: value })).status
        expect([await check(one), await check(one), await check(other)]).toEqual([200, 429, 200])
        expect((await checks.post('check', { resource })).body['reason']).toBe('unlimited')
      }),
    )

    it('count each combination where the rule counts by several', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: BY_CALLER })
        const check = async (tenantId: string, userId: string): Promise<number> =>
          (await checks.post('check', { resource: '/by-both', tenantId, userId })).status
        expect([
          await check('a', 'ann'),
          await check('a', 'bob'),
          await check('b', 'ann'),
          await check('a', 'ann'),
        ]).toEqual([200, 200, 200, 429])
      }))

    it.each([
      ['method', { resource: '/written', method: 'POST' }, 1],
      ['method that no rule is for', { resource: '/written', method: 'GET' }, 4],
      ['region', { resource: '/abroad', region: 'EU' }, 3],
      ['region that has no limit of its own', { resource: '/abroad', region: 'US' }, 1],
      ['tier', { resource: '/tiered', tier: 'premium' }, 3],
      ['tier that there is not', { resource: '/tiered', tier: 'gold' }, 1],
      ['service', { resource: '/guarded', service: 'billing' }, 4],
      ['service with a limit of its own', { resource: '/guarded', service: 'search' }, 2],
      ['service that is not exempt', { resource: '/guarded', service: 'web' }, 1],
      ['descriptors that are numbers', { resource: '/bytes', descriptors: { bytes: 4096 } }, 2],
      ['tokens', { resource: '/bytes', descriptors: { bytes: 1 }, tokens: 3 }, 3],
      ['tokens of 0, which take nothing', { resource: '/tiered', tokens: 0 }, 4],
    ])('heed the %s', (_what, request, admitted) =>
      withStore(open, async ({ api }) => {
        expect(await api({ ruleSet: BY_CALL }).admitted(4, { userId: 'ann', ...request })).toBe(admitted)
      }),
    )

    it('take the region of the node for callers that do not say where they are', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: BY_CALL, region: 'EU' })
        const abroad = { userId: 'ann', resource: '/abroad' }
        expect(await checks.admitted(4, abroad)).toBe(3)
        expect(await checks.admitted(4, { ...abroad, userId: 'bob', region: 'US' })).toBe(1)
      }))

    it.each([
      ['exempt', 200, { resource: '/health' }, { rule: 'health', limit: null, remaining: null, resetAt: null }],
      ['unlimited', 200, { resource: '/free' }, { rule: '', dimension: '', limit: null }],
      ['never', 429, { resource: '/orders', tokens: 4 }, { rule: '/orders@user', limit: 3, retryAfter: null }],
      ['denied', 429, { resource: '/orders', clientIp: '198.51.100.7' }, { rule: 'bad-network', retryAfter: null }],
      ['blocked', 429, { resource: '/orders', tenantId: 'banned' }, { dimension: 'tenant', retryAfter: 90, limit: 0 }],
    ])('say that a call is %s', (reason, status, request, said) =>
      withStore(open, async ({ api }) => {
        const checks = api({
          ruleSet: {
            ...perUser(3),
            exemptions: [{ name: 'health', match: { resource: '/health' } }],
            denyList: [{ name: 'bad-network', match: { cidrs: ['198.51.100.0/24'] } }],
          },
        })
        checks.engine.block('tenant', 'banned', { duration: 89_001 })
        const answer = await checks.post('check', { userId: 'ann', ...request })
        expect(answer).toMatchObject({ status, body: { allowed: status === 200, reason, ...said } })
        expect(answer.headers['Retry-After']).toBe(reason === 'blocked' ? '90' : undefined)
        expect(answer.headers['Cache-Control']).toBe(status === 429 ? 'no-store' : undefined)
      }),
    )

    it('say how long an admitted call must wait for its turn', () =>
      withStore(open, async ({ api }) => {
        const rules: RuleSet['rules'] = [
          { resource: '/mail', dimension: 'global', algorithm: 'leaky-bucket-queue', capacity: 5, ratePerSecond: 4 },
        ]
        const checks = api({ ruleSet: { rules } })
        const delays = [
          await checks.post('check', { resource: '/mail' }),
          await checks.post('check', { resource: '/mail' }),
        ]
        expect(delays.map(({ body }) => body['delayMs'])).toEqual([undefined, 250])
      }))

    it('are all or nothing: a caller denied by one limit takes nothing of the others', () =>
      withStore(open, async ({ api }) => {
        const checks = api({
          ruleSet: {
            rules: [
              { resource: '*', dimension: 'user', limit: 5, window: '1m' },
              { resource: '*', dimension: 'tenant', limit: 3, window: '1m' },
            ],
          },
        })
        const call = { userId: 'ann', tenantId: 'acme', resource: '/orders' }
        expect(await checks.admitted(10, call)).toBe(3)
        expect((await checks.post('check', call)).body).toMatchObject({ dimension: 'tenant', rule: '*@tenant' })
        expect(await checks.remaining({ userId: 'ann', resource: '/orders' })).toBe(2)
        expect(await checks.admitted(10, { userId: 'ann', resource: '/orders' })).toBe(2)
      }))

    it('that are only a look take nothing, and answer as a check would', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: perUser(1) })
        for (let look = 0; look < 3; look++) {
          expect(await checks.post('peek', ORDER)).toMatchObject({ status: 200, body: { allowed: true, remaining: 1 } })
        }
        expect(await checks.admitted(2, ORDER)).toBe(1)
        expect(await checks.post('peek', ORDER)).toMatchObject({
          status: 429,
          headers: { 'Retry-After': '60', 'Cache-Control': 'no-store' },
          body: { allowed: false, reason: 'limit', decisionId: '6' },
        })
      }))
  })

  describe(`batches of checks ${name}`, () => {
    it.each(['check/batch', 'batch'])('are decided each on its own, in their order (%s)', (path) =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: perUser(3) })
        const requests = ['ann', 'bob', 'ann', 'ann', 'ann', 'bob'].map((userId) => ({ userId, resource: '/orders' }))
        const { status, body, headers } = await checks.post(path, {
          requests: [...requests, { resource: '/free' }, { ...ORDER, tokens: 4 }],
        })
        expect(status).toBe(200)
        expect(headers).toEqual({})
        expect(body['answers']).toMatchObject([
          { allowed: true, remaining: 2, decisionId: '1' },
          { allowed: true, remaining: 2, decisionId: '2' },
          { allowed: true, remaining: 1 },
          { allowed: true, remaining: 0 },
          { allowed: false, remaining: 0, reason: 'limit', retryAfter: 60, dimension: 'user' },
          { allowed: true, remaining: 1 },
          { allowed: true, reason: 'unlimited', limit: null },
          { allowed: false, reason: 'never', decisionId: '8' },
        ])
      }),
    )

    it('may have 100 checks, and as many answers', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: perUser(60) })
        const { body } = await checks.post('batch', { requests: Array.from({ length: 100 }, () => ORDER) })
        const answers = body['answers'] as readonly { allowed: boolean }[]
        expect(answers.map(({ allowed }) => allowed)).toEqual(Array.from({ length: 100 }, (_, index) => index < 60))
      }))

    it('with one check that cannot be understood are rejected as a whole, and count nothing', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: perUser(3) })
        const answer = await checks.post('batch', { requests: [ORDER, ORDER, { ...ORDER, tokens: -1 }, { userId: 7 }] })
        expect(answer.status).toBe(400)
        expect(wrongPaths(answer)).toEqual(['/requests/2/tokens', '/requests/3/userId', '/requests/3/resource'])
        expect(await checks.remaining(ORDER)).toBe(3)
      }))

    it.each([
      ['no checks', { requests: [] }, '/requests'],
      ['more than 100', { requests: Array.from({ length: 101 }, () => ORDER) }, '/requests'],
      ['checks that are no list', { requests: ORDER }, '/requests'],
      ['another name for them', { checks: [ORDER] }, '/requests'],
      ['no object', [ORDER], ''],
    ])('are rejected with %s', (_what, body, path) =>
      withStore(open, async ({ api }) => {
        const answer = await api({ ruleSet: perUser(3) }).post('check/batch', body)
        expect(answer).toMatchObject({ status: 400, body: { code: 'SLUICE_HTTP_INVALID_REQUEST' } })
        expect(wrongPaths(answer)[0]).toBe(path)
      }),
    )
  })
}
