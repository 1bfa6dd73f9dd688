import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService, startService } from '../service.fixture.ts'

// Threads share a memory in which states have a fixed size: a rule that needs more is rejected when it is put.

const STATE_SIZE = 32

let node: RunningNode

beforeAll(async () => {
  node = await startRealService({ threads: 2, stateSize: STATE_SIZE })
})

afterAll(() => node.stop())

const slots = (limit: number, more: object = {}): object => ({
  resource: '/jobs',
  rules: [{ dimension: 'user', algorithm: 'concurrency', limit, lease: '30s', ...more }],
})

async function problemsOf(response: Response): Promise<readonly { path: string; expected: string }[]> {
  const body = (await response.json()) as { code: string; errors: { path: string; expected: string }[] }
  expect([response.status, body.code]).toEqual([422, 'SLUICE_HTTP_INVALID_RULE_SET'])
  return body.errors
}

describe('rules whose states do not fit', () => {
  it('are rejected with their path and advice', async () => {
    const [error, ...others] = await problemsOf(await node.admin('PUT', '/admin/ratelimits', { body: slots(11) }))
    expect(others).toEqual([])
    expect(error).toMatchObject({ path: '/rules/0', expected: expect.stringContaining('--state-size 33') })
    const log = {
      resource: '/x',
      rules: [{ dimension: 'user', algorithm: 'sliding-window-log', limit: 17, window: '1m' }],
    }
    expect(await problemsOf(await node.admin('PUT', '/admin/ratelimits', { body: log }))).toHaveLength(1)
  })

  it('are rejected in every kind of change', async () => {
    expect((await node.admin('PUT', '/admin/ratelimits', { body: slots(10) })).status).toBe(200)
    const answer = await node.check({ userId: 'u1', resource: '/jobs' })
    expect(answer.status).toBeLessThan(500)
    const ruleSet = { rules: [{ ...(slots(11) as { rules: object[] }).rules[0], resource: '/jobs' }] }
    const draft = await problemsOf(await node.admin('POST', '/admin/versions', { body: { ruleSet, basedOn: 0 } }))
    expect(draft[0]).toMatchObject({ path: '/ruleSet/rules/0' })
    const tier = { name: 'premium', multiplier: 2 }
    expect(await problemsOf(await node.admin('PUT', '/admin/tiers/premium', { body: tier }))).toHaveLength(1)
    const burst = { name: 'premium', burst: 1 }
    expect(await problemsOf(await node.admin('PUT', '/admin/tiers/premium', { body: burst }))).toHaveLength(1)
    const regions = slots(10, { regions: { eu: 3 } })
    expect(await problemsOf(await node.admin('PUT', '/admin/ratelimits', { body: regions }))).toHaveLength(1)
    const override = { dimension: 'user', entity: 'u1', resource: '/jobs', terms: { limit: 11 } }
    expect(await problemsOf(await node.admin('PUT', '/admin/overrides', { body: override }))).toMatchObject([
      { path: '/terms' },
    ])
    const spelled = { ...override, resource: '/Jobs/' }
    expect(await problemsOf(await node.admin('PUT', '/admin/overrides', { body: spelled }))).toHaveLength(1)
    const overrides = [
      { ...override, terms: { limit: 10 } },
      { ...override, resource: '*', terms: { multiplier: 1.1 } },
    ]
    expect(await problemsOf(await node.admin('POST', '/admin/overrides/bulk', { body: { overrides } }))).toMatchObject([
      { path: '/overrides/1/terms' },
    ])
  })

  it('leave what was enforced as it was', async () => {
    const { items } = (await (await node.admin('GET', '/admin/tiers')).json()) as { items: unknown[] }
    expect(items).toEqual([])
    expect(node.errors).toEqual([])
  })
})

it('one thread alone has room for any', async () => {
  const single = await startService({ stateSize: 4 })
  expect((await single.admin('PUT', '/admin/ratelimits', { body: slots(5000) })).status).toBe(200)
  await single.stop()
})
