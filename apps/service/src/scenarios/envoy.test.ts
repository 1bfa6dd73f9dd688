import type { EnvoyAnswer, Version } from '@sluice/contract'
import { startRedis } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService } from '../service.fixture.ts'
import type { Settings } from '../settings/settings.ts'

// Files of envoyproxy/ratelimit are imported, and enforced where its clients ask.

/** Windows of a year, which do not end while the test runs. */
const SHOP = `
domain: shop
descriptors:
  - key: api_key
    rate_limit: { unit: year, requests_per_unit: 5, name: keys }
  - key: api_key
    value: internal
    rate_limit: { unlimited: true }
  - key: route
    value: /orders/*
    descriptors:
      - key: ip
        rate_limit: { unit: year, requests_per_unit: 1 }
`

async function start(settings: Partial<Settings> = {}): Promise<RunningNode> {
  const node = await startRealService(settings)
  onTestFinished(() => node.stop())
  return node
}

async function onRedis(): Promise<Partial<Settings>> {
  const redis = await startRedis()
  onTestFinished(() => redis.close())
  const common = {
    isCluster: false,
    sentinel: undefined,
    leases: false,
    failureMode: 'closed' as const,
    deadlineMs: 50,
  }
  return { redis: { ...common, urls: [redis.url], prefix: 'envoy' } }
}

/** Imports the file, and moves the version on to `stage`. */
async function importShop(node: RunningNode, stage: 'shadow' | 'enforce'): Promise<number> {
  const body = { files: [{ name: 'shop.yaml', text: SHOP }] }
  const drafted = await node.admin('POST', '/admin/versions/import', { body })
  expect(drafted.status).toBe(201)
  const { number } = (await drafted.json()) as Version
  const staged = await node.admin('POST', `/admin/versions/${number}/stage`, { body: { stage } })
  expect(staged.status).toBe(200)
  return number
}

async function ask({ origin }: RunningNode, ...entries: readonly [string, string][]): Promise<Response> {
  const descriptors = [{ entries: entries.map(([key, value]) => ({ key, value })) }]
  return await fetch(`${origin}/json`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ domain: 'shop', descriptors }),
  })
}

async function statuses(node: RunningNode, count: number, entry: [string, string]): Promise<readonly number[]> {
  const found: number[] = []
  for (let call = 0; call < count; call++) {
    const answer = await ask(node, entry)
    found.push(answer.status)
    await answer.body?.cancel()
  }
  return found
}

const FIVE_OF_EIGHT = [200, 200, 200, 200, 200, 429, 429, 429]

describe.each<[string, () => Promise<Partial<Settings>>]>([
  ['in memory', () => Promise.resolve({})],
  ['in the memory of two threads', () => Promise.resolve({ threads: 2 })],
  ['on Redis', onRedis],
])('a file of Envoy that is enforced, %s', (_where, settingsOf) => {
  it('denies from its limit on, each value on its own, and not before', async () => {
    const node = await start(await settingsOf())
    const before = await ask(node, ['api_key', 'abc'])
    expect([before.status, await before.json()]).toEqual([200, { overallCode: 'OK', statuses: [{ code: 'OK' }] }])
    await importShop(node, 'enforce')
    expect(await statuses(node, 8, ['api_key', 'abc'])).toEqual(FIVE_OF_EIGHT)
    expect(await statuses(node, 8, ['api_key', 'other'])).toEqual(FIVE_OF_EIGHT)
    expect(await statuses(node, 8, ['api_key', 'internal'])).toEqual(Array(8).fill(200))
    const denied = await ask(node, ['api_key', 'abc'])
    const { overallCode, statuses: reported } = (await denied.json()) as EnvoyAnswer
    expect([denied.status, overallCode, reported]).toEqual([
      429,
      'OVER_LIMIT',
      [
        {
          code: 'OVER_LIMIT',
          currentLimit: { requestsPerUnit: 5, unit: 'YEAR', name: 'keys' },
          durationUntilReset: expect.stringMatching(/^\d+s$/),
        },
      ],
    ])
    expect(denied.headers.get('Retry-After')).toMatch(/^\d+$/)
    const nested = [await ask(node, ['route', '/orders/1'], ['ip', '192.0.2.1'])]
    nested.push(await ask(node, ['route', '/orders/1'], ['ip', '192.0.2.1']))
    expect(nested.map(({ status }) => status)).toEqual([200, 429])
    for (const answer of nested) await answer.body?.cancel()
  })
})

describe('a file of Envoy', () => {
  it('limits nothing while its version is in shadow: its domains hold with the version that is enforced', async () => {
    const node = await start()
    await importShop(node, 'shadow')
    expect(await statuses(node, 8, ['api_key', 'abc'])).toEqual(Array(8).fill(200))
  })

  it('shares its limits with all nodes on one Redis', async () => {
    const settings = await onRedis()
    const nodes = [await start(settings), await start(settings)]
    for (const node of nodes) await importShop(node, 'enforce')
    const answers = await Promise.all(nodes.map((node) => statuses(node, 4, ['api_key', 'abc'])))
    expect(answers.flat().filter((status) => status === 200)).toHaveLength(5)
  })

  it('is counted under its domain', async () => {
    const node = await start()
    await importShop(node, 'enforce')
    await statuses(node, 8, ['api_key', 'abc'])
    const metrics = await (await fetch(`${node.origin}/metrics`)).text()
    expect(metrics).toContain('ratelimit_checks_total{dimension="descriptor",resource="shop",result="allowed"} 5')
    expect(metrics).toContain('ratelimit_checks_total{dimension="descriptor",resource="shop",result="denied"} 3')
    expect(metrics).toContain('sluice_http_requests_total{operation="POST /json",status="429"} 3')
  })
})

describe('POST /json', () => {
  it('asks for a key where the check API does', async () => {
    const node = await start({ checkKey: true })
    const answer = await ask(node, ['api_key', 'abc'])
    expect([answer.status, await answer.text()]).toEqual([401, expect.stringContaining('SLUICE_HTTP_UNAUTHORIZED')])
    const body = { domain: 'shop', descriptors: [{ entries: [{ key: 'api_key', value: 'abc' }] }] }
    expect((await node.admin('POST', '/json', { body })).status).toBe(200)
  })

  it('rejects invalid JSON, bodies that are too large, and unknown fields', async () => {
    const { origin } = await start()
    const post = async (body: string): Promise<readonly unknown[]> => {
      const headers = { 'Content-Type': 'application/json' }
      const answer = await fetch(`${origin}/json`, { method: 'POST', headers, body })
      return [answer.status, ((await answer.json()) as { readonly code: string }).code]
    }
    expect(await post('{"domain":')).toEqual([400, 'SLUICE_HTTP_INVALID_JSON'])
    expect(await post(`"${'x'.repeat(1_048_576)}"`)).toEqual([413, 'SLUICE_HTTP_TOO_LARGE'])
    expect(await post('{"domain":"shop","descriptors":[{"entries":[{"key":"k"}]}],"hits":1}')).toEqual([
      400,
      'SLUICE_HTTP_INVALID_REQUEST',
    ])
    expect((await fetch(`${origin}/json`)).status).toBe(405)
  })
})
