import type { Explanation, Operation, OperationId, UsageAnswer } from '@sluice/contract'
import { mayDo, OPERATIONS } from '@sluice/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EXAMPLE_CALLS } from '../operations/admin/example-calls.test.support.ts'
import type { RunningService } from '../service.fixture.ts'
import { startService } from '../service.fixture.ts'

// Keys of tenants: every operation, called with the key of one tenant about itself, about another, and about what all
// share.

const OWN = 'acme'
const FOREIGN = 'umbrella'
const RESOURCE = '/x'

/** A request to an operation: what follows its path, and its body. */
interface Asked {
  readonly query?: string
  readonly body?: unknown
}

interface TenantCase {
  /** Succeeds with the key of the tenant. */
  readonly own: readonly Asked[]
  /** Is rejected. */
  readonly foreign: readonly Asked[]
}

function call(more: object): Asked {
  return { body: { resource: RESOURCE, ...more } }
}

const CALLS: TenantCase = {
  own: [call({}), call({ tenantId: OWN }), call({ tenant: OWN }), call({ userId: 'u1' }), call({ user: 'u1' })],
  foreign: [
    call({ tenantId: FOREIGN }),
    call({ tenant: FOREIGN }),
    call({ tenant: OWN, tenantId: FOREIGN }),
    call({ tenant: FOREIGN, tenantId: OWN }),
    call({ tenantId: FOREIGN, userId: 'u1' }),
    call({ tenantId: '' }),
    call({ tenant: '' }),
    call({ tenant: null }),
  ],
}

const BATCHES: TenantCase = {
  own: [{ body: { requests: [{ resource: RESOURCE }, { resource: RESOURCE, tenantId: OWN }] } }],
  foreign: [
    { body: { requests: [{ resource: RESOURCE }, { resource: RESOURCE, tenantId: FOREIGN }] } },
    { body: { requests: [{ resource: RESOURCE }, { resource: RESOURCE, tenant: FOREIGN }] } },
  ],
}

const QUERIES: TenantCase = {
  own: [{}, { query: `?dimension=tenant&entity=${OWN}` }],
  foreign: [{ query: `?entity=${FOREIGN}` }, { query: '?dimension=user' }, { query: '?dimension=tenant%2Buser' }],
}

function entries(more: object): TenantCase {
  return {
    own: [{ body: { dimension: 'tenant', entity: OWN, ...more } }],
    foreign: [
      { body: { dimension: 'tenant', entity: FOREIGN, ...more } },
      { body: { dimension: 'user', entity: OWN, ...more } },
      // A tier has no single owner.
      ...('tier' in more ? [] : [{ body: { dimension: 'tenant+user', entity: OWN, ...more } }]),
    ],
  }
}

function bulk(field: string, { own, foreign }: TenantCase): TenantCase {
  return {
    own: [{ body: { [field]: own.map(({ body }) => body) } }],
    foreign: foreign.map((other) => ({ body: { [field]: [own[0]!.body, other.body] } })),
  }
}

function removals(more = ''): TenantCase {
  return {
    own: [{ query: `?dimension=tenant&entity=${OWN}${more}` }],
    foreign: [
      { query: `?dimension=tenant&entity=${FOREIGN}${more}` },
      { query: `?dimension=user&entity=${OWN}${more}` },
    ],
  }
}

const OVERRIDE = { resource: '*', terms: { multiplier: 2 } }

/** What the keys of tenants are good for. Nothing else is. */
const TENANT_CASES: Readonly<Partial<Record<OperationId, TenantCase>>> = {
  check: CALLS,
  peek: CALLS,
  reserve: CALLS,
  acquire: CALLS,
  checkBatch: BATCHES,
  checkBatchAlias: BATCHES,
  usage: {
    own: [{}, { query: `?tenantId=${OWN}` }, { query: `?tenant=${OWN}` }, { query: `?resource=${RESOURCE}` }],
    foreign: [
      { query: `?tenantId=${FOREIGN}` },
      { query: `?tenant=${FOREIGN}` },
      { query: `?tenant=${OWN}&tenantId=${FOREIGN}` },
      { query: '?userId=u1' },
      { query: '?user=u1' },
      { query: `?tenantId=${OWN}&clientIp=192.0.2.1` },
      { query: '?ip=192.0.2.1' },
      { query: `?descriptors=${encodeURIComponent('{"model":"large"}')}` },
      { query: '?apiKey=k' },
      { query: '?service=billing' },
    ],
  },
  explain: {
    own: [call({}), call({ tenantId: OWN, method: 'GET' })],
    foreign: [
      call({ tenantId: FOREIGN }),
      call({ tenant: FOREIGN }),
      call({ userId: 'u1' }),
      call({ user: 'u1' }),
      call({ tenantId: OWN, clientIp: '192.0.2.1' }),
      call({ ip: '192.0.2.1' }),
      call({ apiKey: 'k' }),
      call({ descriptors: { model: 'large' } }),
    ],
  },
  putOverride: entries(OVERRIDE),
  listOverrides: QUERIES,
  deleteOverride: removals('&resource=*'),
  bulkOverrides: bulk('overrides', entries(OVERRIDE)),
  putMember: entries({ tier: 'premium' }),
  listMembers: QUERIES,
  deleteMember: removals(),
  bulkMembers: bulk('members', entries({ tier: 'premium' })),
  putBlock: entries({ duration: '1h' }),
  listBlocks: QUERIES,
  deleteBlock: removals(),
  listSessions: { own: [{}], foreign: [{ query: '?of=all' }] },
  // Sessions of other keys are unknown to it, as if they did not exist.
  endSession: { own: [], foreign: [] },
  reset: {
    own: [{ body: {} }, { body: { tenantId: OWN, note: 'asked for it' } }, { body: { tenant: OWN } }],
    foreign: [
      { body: { tenantId: FOREIGN } },
      { body: { tenant: FOREIGN } },
      { body: { userId: 'u1' } },
      { body: { user: 'u1' } },
      // Under a resource there is what all tenants share.
      { body: { tenantId: OWN, resource: RESOURCE } },
      { body: { descriptors: { model: 'large' } } },
    ],
  },
}

/** These use the id of a reservation, which only its holder has. */
const BY_RESERVATION: readonly string[] = ['settle', 'release', 'heartbeat'] satisfies OperationId[]

const NEED_A_KEY = Object.values<Operation>(OPERATIONS).filter(({ role, tag }) => role !== 'none' || tag === 'checks')

let node: RunningService
let tenantKey: string

beforeAll(async () => {
  node = await startService({ checkKey: true })
  const rules = [
    { dimension: 'tenant', limit: 1000, window: '1m' },
    { dimension: 'global', limit: 100_000, window: '1m' },
  ]
  await node.admin('PUT', '/admin/ratelimits', { body: { resource: RESOURCE, rules } })
  await node.admin('PUT', '/admin/tiers/premium', { body: { name: 'premium', multiplier: 2 } })
  tenantKey = await keyOf({ name: 'of acme', role: 'admin', tenant: OWN })
})

afterAll(() => node.stop())

async function keyOf(body: object): Promise<string> {
  const made = await node.admin('POST', '/admin/api-keys', { body })
  expect(made.status).toBe(201)
  return ((await made.json()) as { token: string }).token
}

async function ask({ method, path }: Operation, { query = '', body }: Asked, key = tenantKey): Promise<Response> {
  const target = path.replaceAll(/\{\w+\}/g, '1') + query
  return await node.admin(method, target, { key, ...(body === undefined ? {} : { body }) })
}

async function problemOf(response: Response): Promise<unknown> {
  const text = await response.text()
  expect([response.status, text]).toEqual([403, expect.stringContaining('SLUICE_HTTP_FORBIDDEN')])
  expect(response.headers.get('cache-control')).toBe('no-store')
  return JSON.parse(text)
}

describe('the key of a tenant with the highest role', () => {
  const cases = NEED_A_KEY.map((operation) => [operation.id, operation] as const)

  it.each(cases)('at %s gets what is its own', async (id, operation) => {
    const { own } = TENANT_CASES[id as OperationId] ?? { own: [] }
    for (const asked of own) {
      const response = await ask(operation, asked)
      expect([response.status, await response.text()]).toEqual([
        expect.toSatisfy((status: number) => status < 300),
        expect.any(String),
      ])
    }
  })

  it.each(cases)('at %s gets nothing that is not', async (id, operation) => {
    const known = TENANT_CASES[id as OperationId]
    if (BY_RESERVATION.includes(id)) return
    const example = EXAMPLE_CALLS.find((one) => one.id === id)
    const usual = { ...(example?.body === undefined ? {} : { body: example.body }) }
    for (const asked of known?.foreign ?? [usual]) await problemOf(await ask(operation, asked))
  })

  it.each([
    ['putOverride', { entity: OWN, ...OVERRIDE }],
    ['putOverride', { dimension: 'tenant', ...OVERRIDE }],
    ['putMember', { tier: 'premium' }],
    ['putBlock', [{ dimension: 'user', entity: 'u1', duration: '1h' }]],
    ['bulkOverrides', { overrides: [OVERRIDE] }],
    ['bulkMembers', { members: 'all' }],
    ['checkBatch', { requests: 'all' }],
    ['check', 'all'],
    ['reset', null],
  ] as const)('at %s: a body that names no caller gets 400: %j', async (id, body) => {
    const response = await ask(OPERATIONS[id], { body })
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining('SLUICE_HTTP_INVALID_REQUEST'),
    ])
  })

  it('does not learn whether another has what it asks for', async () => {
    const { putOverride, listOverrides, deleteOverride } = OPERATIONS
    const body = { dimension: 'tenant', entity: FOREIGN, ...OVERRIDE }
    const asked = { query: `?dimension=tenant&entity=${FOREIGN}&resource=*` }
    const before = await problemOf(await ask(deleteOverride, asked))
    expect((await ask(putOverride, { body }, node.adminKey!)).status).toBe(200)
    expect(await problemOf(await ask(deleteOverride, asked))).toEqual(before)
    const listed = await (await ask(listOverrides, {})).text()
    expect(listed).not.toContain(FOREIGN)
    expect((await ask(deleteOverride, asked, node.adminKey!)).status).toBe(204)
  })

  it('sees only rules that count tenants, and no totals', async () => {
    const { explain, usage } = OPERATIONS
    const dimensions = async (key?: string): Promise<readonly (readonly string[])[]> => {
      const { rules } = (await (await ask(explain, call({ tenantId: OWN }), key)).json()) as Explanation
      const query = `?tenantId=${OWN}&resource=${RESOURCE}`
      const { usage: reports } = (await (await ask(usage, { query }, key)).json()) as UsageAnswer
      return [rules, reports].map((list) => [...new Set(list.map(({ dimension }) => dimension))].sort())
    }
    expect(await dimensions()).toEqual([['tenant'], ['tenant']])
    expect(await dimensions(node.adminKey!)).toEqual([
      ['global', 'ip', 'tenant', 'user'],
      ['global', 'tenant'],
    ])
  })

  it('counts for that tenant, whether the check says so or not', async () => {
    const { check, reset, usage } = OPERATIONS
    const remaining = async (): Promise<number> => {
      const { usage: reports } = (await (await ask(usage, {})).json()) as UsageAnswer
      expect(reports).toMatchObject([{ dimension: 'tenant', entity: OWN }])
      return reports[0]!.counters[0]!.remaining!
    }
    expect((await ask(reset, { body: {} })).status).toBe(200)
    const full = await remaining()
    await ask(check, call({}))
    await ask(check, call({ tenantId: OWN }))
    expect(full - (await remaining())).toBe(2)
  })

  it('does not count as one that can administer the service', async () => {
    const [id = ''] = node.adminKey!.split(/_(?=[^_]+$)/)
    const rejected = await node.admin('DELETE', `/admin/api-keys/${id}`)
    expect([rejected.status, await rejected.text()]).toEqual([
      409,
      expect.stringContaining('the last with the role admin'),
    ])
  })
})

describe('the key of a tenant with a lower role', () => {
  it.each(['none', 'viewer', 'editor'] as const)('%s may do no more than that role', async (role) => {
    const key = await keyOf({ name: `${role} of acme`, role, tenant: OWN })
    for (const [id, { own }] of Object.entries(TENANT_CASES)) {
      const operation = OPERATIONS[id as OperationId]
      const { status } = await ask(operation, own[0] ?? {}, key)
      // The tenant may be blocked by now, and the entry to delete may be gone.
      expect([id, status !== 403]).toEqual([id, mayDo(role, operation.role)])
    }
  })
})
