import type { DescriptorNode, RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { OpenStore, ReadAnswer } from './check-api.test.support.ts'
import { withStore, wrongPaths } from './check-api.test.support.ts'

const DESCRIPTORS: readonly DescriptorNode[] = [
  { key: 'user', limit: { unit: 'minute', requestsPerUnit: 3, name: 'users' } },
  { key: 'user', value: 'staff', limit: { unlimited: true } },
  { key: 'user', value: 'bad', limit: { unit: 'day', requestsPerUnit: 0 } },
  { key: 'ip', limit: { unit: 'hour', requestsPerUnit: 1 } },
  { key: 'tried', shadow: true, limit: { unit: 'minute', requestsPerUnit: 1 } },
  { key: 'route', descriptors: [{ key: 'user', limit: { unit: 'second', requestsPerUnit: 5 } }] },
  { key: 'pool', value: 'one', quota: true, metadata: { one: 'a' }, limit: { unit: 'day', requestsPerUnit: 1 } },
  { key: 'pool', value: 'two', quota: true, metadata: { two: 'b' }, limit: { unit: 'hour', requestsPerUnit: 2 } },
]

const SHOP: RuleSet = { rules: [], domains: [{ domain: 'shop', descriptors: DESCRIPTORS }] }

interface Asked {
  readonly domain: string
  readonly descriptors: readonly object[]
}

/** A request of the domain `shop`: `a=1 b=2` is a descriptor of two entries. */
function shop(...descriptors: readonly (string | object)[]): Asked {
  const made = descriptors.map((one) => (typeof one === 'string' ? of(one) : one))
  return { domain: 'shop', descriptors: made }
}

function of(text: string, more: object = {}): object {
  const entries = text.split(' ').map((part) => {
    const [key, value] = part.split('=')
    return value === undefined ? { key } : { key, value }
  })
  return { entries, ...more }
}

function codes({ status, body }: ReadAnswer): readonly unknown[] {
  return [status, body['overallCode'], ...(body['statuses'] as readonly { code: string }[]).map(({ code }) => code)]
}

/** Requests of the Envoy rate limit protocol on a store. */
export function envoySuite(name: string, open: OpenStore): void {
  describe(`requests as Envoy makes them, ${name}`, () => {
    it('are answered in its form: the limit, what is left, and when the window ends', () =>
      withStore(open, async ({ api, clock }) => {
        const checks = api({ ruleSet: SHOP })
        clock.advance(1500)
        expect(await checks.envoy(shop('user=ann'))).toEqual({
          status: 200,
          headers: {
            'X-RateLimit-Limit': '3',
            'X-RateLimit-Remaining': '2',
            'X-RateLimit-Reset': '1893456060',
            'X-RateLimit-Reset-After': '59',
          },
          body: {
            overallCode: 'OK',
            statuses: [
              {
                code: 'OK',
                currentLimit: { requestsPerUnit: 3, unit: 'MINUTE', name: 'users' },
                limitRemaining: 2,
                durationUntilReset: '59s',
              },
            ],
          },
        })
      }))

    it('are denied from the limit on with 429 and when to come back, until the window ends', () =>
      withStore(open, async ({ api, clock }) => {
        const checks = api({ ruleSet: SHOP })
        const ask = (): Promise<ReadAnswer> => checks.envoy(shop('user=ann'))
        for (let call = 0; call < 3; call++) expect((await ask()).status).toBe(200)
        clock.advance(18_000)
        const denied = await ask()
        // What is 0 is left out, as protobuf does it.
        expect(denied.body).toEqual({
          overallCode: 'OVER_LIMIT',
          statuses: [
            {
              code: 'OVER_LIMIT',
              currentLimit: { requestsPerUnit: 3, unit: 'MINUTE', name: 'users' },
              durationUntilReset: '42s',
            },
          ],
        })
        expect(denied).toMatchObject({ status: 429, headers: { 'Retry-After': '42', 'Cache-Control': 'no-store' } })
        expect((await checks.envoy(shop('user=bob'))).status).toBe(200)
        clock.advance(41_999)
        expect((await ask()).status).toBe(429)
        clock.advance(1)
        expect((await ask()).status).toBe(200)
      }))

    it('admit exactly the limit when many come at once', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: SHOP })
        const answers = await Promise.all(Array.from({ length: 30 }, () => checks.envoy(shop('user=ann'))))
        expect(answers.filter(({ status }) => status === 200).length).toBe(3)
      }))

    it('are charged for all descriptors or for none', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: SHOP })
        expect(codes(await checks.envoy(shop('user=ann', 'ip=i1')))).toEqual([200, 'OK', 'OK', 'OK'])
        const denied = await checks.envoy(shop('user=ann', 'ip=i1'))
        expect(codes(denied)).toEqual([429, 'OVER_LIMIT', 'OK', 'OVER_LIMIT'])
        expect(denied.headers).toMatchObject({ 'X-RateLimit-Limit': '1', 'Retry-After': '3600' })
        expect((await checks.envoy(shop(of('user=ann', { hitsAddend: 0 })))).body['statuses']).toMatchObject([
          { limitRemaining: 2 },
        ])
      }))

    it.each([
      ['hitsAddend', 2],
      ['hitsAddend', '2'],
      ['hits_addend', 2],
      ['hits_addend', '2'],
    ])('take %s of %j, of the request and of a descriptor', (field, hits) =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: SHOP })
        const left = async (request: object): Promise<unknown> => (await checks.envoy(request)).body['statuses']
        expect(await left({ ...shop('user=ann'), [field]: hits })).toMatchObject([{ limitRemaining: 1 }])
        expect(await left(shop(of('user=bob', { [field]: hits })))).toMatchObject([{ limitRemaining: 1 }])
        expect(await left({ ...shop(of('user=eve', { [field]: hits })), hitsAddend: 1 })).toMatchObject([
          { limitRemaining: 1 },
        ])
      }),
    )

    it('limit nothing where there is no rule, and say so for one that does not limit', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: SHOP })
        const { headers, body } = await checks.envoy(shop('other', 'user=staff', 'route=/a', 'route=/a user=ann more'))
        expect(headers).toEqual({})
        expect(body).toEqual({
          overallCode: 'OK',
          statuses: [{ code: 'OK' }, { code: 'OK', limitRemaining: 4_294_967_295 }, { code: 'OK' }, { code: 'OK' }],
        })
        expect((await checks.envoy({ ...shop('user=bad'), domain: 'mail' })).body).toEqual({
          overallCode: 'OK',
          statuses: [{ code: 'OK' }],
        })
      }))

    it('have no time to come back where waiting does not help', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: SHOP })
        const blocked = await checks.envoy(shop('user=bad'))
        expect(codes(blocked)).toEqual([429, 'OVER_LIMIT', 'OVER_LIMIT'])
        expect((blocked.body['statuses'] as readonly object[])[0]).toMatchObject({ currentLimit: { unit: 'DAY' } })
        const large = await checks.envoy({ ...shop('user=ann'), hitsAddend: 4 })
        expect(codes(large)).toEqual([429, 'OVER_LIMIT', 'OVER_LIMIT'])
        for (const { headers } of [blocked, large]) expect(Object.keys(headers)).not.toContain('Retry-After')
      }))

    it('say which quotas are used up, with the metadata of the others, and deny when none is left', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: SHOP })
        const pools = shop('pool=one', of('pool=two', { hitsAddend: 1 }))
        const descriptors = [{ entries: ['pool=one'] }, { entries: ['pool=two'], hitsAddend: 1 }]
        const asked = { domain: 'shop', descriptors }
        const answers = [await checks.envoy(pools), await checks.envoy(pools), await checks.envoy(pools)]
        expect(answers.map(codes)).toEqual([
          [200, 'OK', 'OK', 'OK'],
          [200, 'OK', 'OVER_LIMIT', 'OK'],
          [429, 'OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT'],
        ])
        expect(answers.map(({ body }) => body['dynamicMetadata'])).toEqual([
          { ...asked, metadata: { one: 'a', two: 'b' } },
          { ...asked, metadata: { two: 'b' } },
          undefined,
        ])
        // One quota is enough: the call is worth repeating after the hour, not after the day.
        const { 'X-RateLimit-Limit': limit, 'Retry-After': wait } = answers[2]!.headers
        expect([limit, Number(wait) <= 3600]).toEqual(['2', true])
        // A used up quota of a call that something else denies does not lengthen its wait.
        await checks.envoy(shop(of('user=ann', { hitsAddend: 3 })))
        const denied = await checks.envoy(shop('pool=one', 'user=ann', 'pool=two'))
        expect([denied.headers['X-RateLimit-Limit'], codes(denied)[0]]).toEqual(['2', 429])
      }))

    it('bring limits of their own, and are not denied by those in shadow', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: SHOP })
        const own = (limit: object): object => of('plan=free', { limit })
        const one = { unit: 'HOUR', requests_per_unit: '1' }
        expect(codes(await checks.envoy(shop(own(one))))).toEqual([200, 'OK', 'OK'])
        expect(codes(await checks.envoy(shop(own({ unit: 'HOUR', requestsPerUnit: 1 }))))[0]).toBe(429)
        expect(codes(await checks.envoy(shop(own({ unit: 'WEEK' }))))[0]).toBe(429)
        for (let call = 0; call < 3; call++) expect((await checks.envoy(shop('tried=x'))).status).toBe(200)
      }))

    it('are rejected as a whole, with what is wrong, and count nothing', () =>
      withStore(open, async ({ api }) => {
        const checks = api({ ruleSet: SHOP })
        const wrong = shop('user=ann', of('user=ann', { limit: { unit: 'MONTHS' }, hitsAddend: -1 }), { entries: [] })
        const answer = await checks.envoy(wrong)
        expect(answer).toMatchObject({ status: 400, body: { code: 'SLUICE_HTTP_INVALID_REQUEST' } })
        expect(wrongPaths(answer)).toEqual([
          '/descriptors/1/limit/unit',
          '/descriptors/1/hitsAddend',
          '/descriptors/2/entries',
        ])
        expect((await checks.envoy(shop('user=ann'))).body['statuses']).toMatchObject([{ limitRemaining: 2 }])
      }))
  })
}
