import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningService } from '../../service.fixture.ts'
import { startService } from '../../service.fixture.ts'
import type { Settings } from '../../settings/settings.ts'
import { forwardAuthHandlers } from './forward-auth.ts'

const PATH = '/internal/ratelimit/forward-auth'

async function start(settings: Partial<Settings> = {}): Promise<RunningService> {
  const node = await startService(settings)
  onTestFinished(() => node.stop())
  const rule = { dimension: 'ip', limit: 2, window: '1h' }
  expect((await node.admin('PUT', '/admin/ratelimits', { body: { resource: '/a', rules: [rule] } })).status).toBe(200)
  return node
}

function ask(node: RunningService, headers: Readonly<Record<string, string>>, query = ''): Promise<Response> {
  return fetch(`${node.origin}${PATH}${query}`, { headers })
}

const FORWARDED = { 'X-Forwarded-Uri': '/a?x=1', 'X-Forwarded-Method': 'POST', 'X-Forwarded-For': '192.0.2.7' }

async function remaining(node: RunningService, forwardedFor: string): Promise<string | null> {
  const answer = await ask(node, { ...FORWARDED, 'X-Forwarded-For': forwardedFor })
  return answer.headers.get('x-ratelimit-remaining')
}

describe('forward authentication', () => {
  it('allows with 200 and denies with 429 or the requested status, with the headers of a check', async () => {
    const node = await start({ checkKey: true })
    const statuses: number[] = []
    for (let call = 0; call < 3; call++) statuses.push((await ask(node, FORWARDED)).status)
    expect(statuses).toEqual([200, 200, 429])
    const denied = await ask(node, { ...FORWARDED, Authorization: 'Basic x' }, '?denyStatus=403')
    expect([denied.status, denied.headers.get('x-ratelimit-limit')]).toEqual([403, '2'])
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  it('tells nothing of a rule that is not announced, but how long to wait; nor does a check', async () => {
    const node = await start()
    const rule = { dimension: 'ip', limit: 1, window: '1h', announce: false }
    expect((await node.admin('PUT', '/admin/ratelimits', { body: { resource: '/a', rules: [rule] } })).status).toBe(200)
    const answers = [await ask(node, FORWARDED), await ask(node, FORWARDED)]
    answers.push(await node.check({ resource: '/a', ip: '192.0.2.7' }))
    expect(answers.map(({ status }) => status)).toEqual([200, 429, 429])
    const limitHeaders = answers.flatMap(({ headers }) => [...headers.keys()].filter((name) => /ratelimit/.test(name)))
    expect(limitHeaders).toEqual([])
    expect(answers.map(({ headers }) => headers.has('retry-after'))).toEqual([false, true, true])
    const body = (await answers[2]?.json()) as object
    expect(body).toMatchObject({ allowed: false, limit: null, remaining: null, resetAt: null })
  })

  it.each(['denyStatus=200', 'denyStatus=500', 'userHeader=x', 'page=1'])('rejects the query %s', async (query) => {
    expect((await ask(await start(), FORWARDED, `?${query}`)).status).toBe(400)
  })

  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['198.51.100.1, 192.0.2.7', '192.0.2.7'],
    ['198.51.100.1, 192.0.2.7, 10.1.2.3', '192.0.2.7'],
    ['garbage, 192.0.2.7:443, 10.1.2.3, 127.0.0.1', '192.0.2.7'],
    ['[2001:db8::1]:443', '2001:db8::1'],
  ])('counts %s as %s: the last address that is no trusted proxy', async (forwardedFor, address) => {
    const node = await start({ trustedProxies: ['10.0.0.0/8'] })
    expect(await remaining(node, forwardedFor)).toBe('1')
    expect(await remaining(node, address)).toBe('0')
  })

  it.each([
    [{ 'X-Forwarded-For': '192.0.2.7' }, 'no X-Forwarded-Uri header'],
    [{ 'X-Forwarded-Uri': '/a' }, 'no address in X-Forwarded-For'],
    [{ ...FORWARDED, 'X-Forwarded-For': 'unknown' }, 'no address in X-Forwarded-For'],
    [{ ...FORWARDED, 'X-Forwarded-Method': 'G T' }, '/method'],
  ])('rejects %j', async (headers, text) => {
    const answer = await ask(await start(), headers)
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(text)])
  })

  it('counts by the headers that the settings name, and by no others', async () => {
    const node = await start({ forwardAuthIdentity: { user: 'X-User' } })
    const rule = { dimension: 'user', limit: 1, window: '1h' }
    await node.admin('PUT', '/admin/ratelimits', { body: { resource: '/b', rules: [rule] } })
    const asUser = async (name: string, user: string): Promise<number> =>
      (await ask(node, { ...FORWARDED, 'X-Forwarded-Uri': '/b', [name]: user })).status
    expect([await asUser('X-User', 'a'), await asUser('X-User', 'a'), await asUser('X-User', 'b')]).toEqual([
      200, 429, 200,
    ])
    expect(await asUser('X-Other', 'a')).toBe(200)
  })

  it('is for trusted proxies only', async () => {
    const node = await start()
    const { forwardAuth } = forwardAuthHandlers({
      ...{ settings: node.settings, follower: { hasRules: true }, clock: { nowMicros: () => 0 } },
      ...{ nextId: () => '1', random: () => 0 },
      engine: undefined,
    } as never)
    const request = { headers: {}, parameters: { denyStatus: 429 }, remoteAddress: '192.0.2.1' }
    expect(await forwardAuth(request as never)).toMatchObject({
      status: 400,
      body: expect.stringContaining('--trusted-proxies'),
    })
  })
})
