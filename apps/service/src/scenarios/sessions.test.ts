import type { Operation, Session, SessionState } from '@sluice/contract'
import { mayDo, OPERATIONS } from '@sluice/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RunningService } from '../service.fixture.ts'
import { startService } from '../service.fixture.ts'

const MINUTE_MICROS = 60_000_000

/** How to ask. */
interface Asked {
  readonly cookie?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** A browser that is signed in. */
interface Browser {
  readonly cookie: string
  /** The whole header. */
  readonly setCookie: string
  readonly token: string
  readonly id: string
}

let service: RunningService
const keys: Record<string, string> = {}

async function send(target: string, { cookie, headers, body }: Asked = {}): Promise<Response> {
  const [method = '', path = ''] = target.split(' ')
  return await fetch(service.origin + path, {
    method,
    headers: {
      ...(cookie === undefined ? {} : { Cookie: cookie }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

async function signIn(apiKey: string, asked: Omit<Asked, 'body'> = {}): Promise<Browser> {
  const response = await send('POST /auth/session', { ...asked, body: { apiKey } })
  expect(response.status).toBe(200)
  const { session, csrfToken } = (await response.json()) as SessionState
  const setCookie = response.headers.get('set-cookie')!
  return { setCookie, cookie: setCookie.split(';')[0]!, token: csrfToken!, id: session!.id }
}

async function makeKey(role: string, more: object = {}): Promise<{ id: string; token: string }> {
  const response = await service.admin('POST', '/admin/api-keys', { body: { name: `a ${role}`, role, ...more } })
  const { apiKey, token } = (await response.json()) as { apiKey: { id: string }; token: string }
  return { id: apiKey.id, token }
}

async function codeOf(response: Response): Promise<unknown> {
  const { code } = (await response.json()) as { code?: unknown }
  return [response.status, code]
}

beforeAll(async () => {
  service = await startService({ trustedProxies: ['127.0.0.1'], threads: 1 })
  for (const role of ['none', 'viewer', 'editor', 'admin']) keys[role] = (await makeKey(role)).token
})

afterAll(() => service.stop())

describe('signing in', () => {
  it('exchanges a key for a cookie that scripts cannot read, and says who is signed in', async () => {
    const browser = await signIn(keys['editor']!)
    expect(browser.setCookie).toMatch(
      /^sluice_session_[0-9a-f]{8}=s1\.[\w.-]+; Path=\/; Max-Age=1800; HttpOnly; SameSite=Strict$/,
    )
    expect(browser.cookie.length).toBeLessThan(400)
    expect(browser.cookie).not.toContain(keys['editor']!.split('_')[2])
    const state = (await (await send('GET /auth/session', browser)).json()) as SessionState
    expect(state).toMatchObject({ isSignedIn: true, csrfToken: browser.token })
    expect(state.session).toMatchObject({ id: browser.id, name: 'a editor', role: 'editor', isCurrent: true })
    const signedOut = await send('GET /auth/session')
    expect([signedOut.status, await signedOut.json()]).toEqual([200, { isSignedIn: false }])
    expect(signedOut.headers.get('cache-control')).toBe('no-store')
  })

  it('marks the cookie Secure behind TLS, and sets its path behind a proxy', async () => {
    const proxy = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Prefix': '/ops/limits/' }
    expect((await signIn(keys['viewer']!, { headers: proxy })).setCookie).toMatch(/; Path=\/ops\/limits; .*; Secure$/)
    const origin = { Origin: service.origin.replace('http:', 'https:') }
    expect((await signIn(keys['viewer']!, { headers: origin })).setCookie).toMatch(/; Secure$/)
    for (const prefix of ['/a/../b', '//evil', '/a;Domain=x', 'a', '/a b']) {
      const { setCookie } = await signIn(keys['viewer']!, { headers: { 'X-Forwarded-Prefix': prefix } })
      expect([prefix, setCookie]).toEqual([prefix, expect.stringContaining('; Path=/; ')])
    }
  })

  it('rejects keys that are wrong, have no role, or come from another site', async () => {
    const ask = async (apiKey: string, headers = {}) =>
      codeOf(await send('POST /auth/session', { body: { apiKey }, headers }))
    expect(await ask('nonsense')).toEqual([401, 'SLUICE_HTTP_UNAUTHORIZED'])
    expect(await ask(`${keys['viewer']!.slice(0, -3)}AAA`)).toEqual([401, 'SLUICE_HTTP_UNAUTHORIZED'])
    expect(await ask(keys['none']!)).toEqual([403, 'SLUICE_HTTP_FORBIDDEN'])
    expect(await ask(keys['viewer']!, { 'Sec-Fetch-Site': 'cross-site' })).toEqual([403, 'SLUICE_HTTP_CSRF'])
    expect(await ask(keys['viewer']!, { Origin: 'https://evil.example' })).toEqual([403, 'SLUICE_HTTP_CSRF'])
    service.advance(MINUTE_MICROS)
  })

  it('limits failed attempts as those with an invalid key, and lets valid keys in', async () => {
    const wrong = { body: { apiKey: 'nonsense' }, headers: { 'X-Forwarded-For': '198.51.100.7' } }
    const statuses: number[] = []
    for (let number = 0; number < 22; number++) statuses.push((await send('POST /auth/session', wrong)).status)
    expect(statuses).toEqual([...Array(20).fill(401), 429, 429])
    await signIn(keys['viewer']!, { headers: { 'X-Forwarded-For': '198.51.100.7' } })
    service.advance(MINUTE_MICROS)
  })

  it('ends the session that the browser had before', async () => {
    const before = await signIn(keys['viewer']!)
    const now = await signIn(keys['viewer']!, { cookie: before.cookie })
    expect((await send('GET /admin/audit', before)).status).toBe(401)
    expect((await send('GET /admin/audit', now)).status).toBe(200)
  })
})

describe('a session', () => {
  it('does what its role may on every admin operation, as the key does; changes need the token', async () => {
    const admin = Object.values<Operation>(OPERATIONS).filter(({ role, streams }) => role !== 'none' && !streams)
    expect(admin.length).toBeGreaterThan(40)
    for (const role of ['viewer', 'editor', 'admin'] as const) {
      const browser = await signIn(keys[role]!)
      for (const { id, method, path, role: needed, body } of admin) {
        const target = `${method} ${path.replaceAll(/\{\w+\}/g, '999999')}`
        // Invalid on purpose: what counts is who is let in, and nothing is to change.
        const asked = { cookie: browser.cookie, ...(body === undefined ? {} : { body: [] }) }
        const withToken = await send(target, { ...asked, headers: { 'X-CSRF-Token': browser.token } })
        const isAllowed = mayDo(role, needed)
        const [status, code] = withToken.status >= 400 ? ((await codeOf(withToken)) as [number, string]) : [200, '']
        expect([role, id, status === 401 || code === 'SLUICE_HTTP_CSRF']).toEqual([role, id, false])
        expect([role, id, code !== 'SLUICE_HTTP_FORBIDDEN']).toEqual([role, id, isAllowed])
        if (method === 'GET') continue
        expect([role, id, await codeOf(await send(target, asked))]).toEqual([role, id, [403, 'SLUICE_HTTP_CSRF']])
      }
    }
  })

  it('is not taken where another site may ask, whatever token comes', async () => {
    const { cookie, token } = await signIn(keys['editor']!)
    const body = { active: false }
    const ask = async (headers: Readonly<Record<string, string>>) =>
      (await send('PUT /admin/incident', { cookie, body, headers: { 'X-CSRF-Token': token, ...headers } })).status
    const host = new URL(service.origin).host
    expect(await ask({})).toBe(200)
    expect(await ask({ Origin: service.origin })).toBe(200)
    expect(await ask({ 'Sec-Fetch-Site': 'same-origin', Origin: 'https://shown.example' })).toBe(200)
    expect(await ask({ Origin: 'https://shown.example', 'X-Forwarded-Host': 'shown.example' })).toBe(200)
    expect(await ask({ 'Sec-Fetch-Site': 'same-site' })).toBe(403)
    expect(await ask({ 'Sec-Fetch-Site': 'cross-site', Origin: service.origin })).toBe(403)
    expect(await ask({ Origin: 'null' })).toBe(403)
    expect(await ask({ Origin: `https://${host}.evil.example` })).toBe(403)
    const other = await signIn(keys['editor']!)
    expect(await ask({ 'X-CSRF-Token': other.token })).toBe(403)
  })

  it('is not taken by checks, and gives way to a key in the header', async () => {
    const { cookie } = await signIn(keys['viewer']!)
    const headers = { Authorization: `Bearer ${keys['admin']}` }
    expect((await send('GET /admin/api-keys', { cookie })).status).toBe(403)
    expect((await send('GET /admin/api-keys', { cookie, headers })).status).toBe(200)
    expect((await send('GET /admin/api-keys', { cookie, headers: { Authorization: 'Bearer no' } })).status).toBe(401)
    service.advance(MINUTE_MICROS)
  })

  it('cannot be forged: every changed byte of its cookie ends it', async () => {
    const { cookie } = await signIn(keys['viewer']!)
    const [name, value] = [cookie.slice(0, cookie.indexOf('=')), cookie.slice(cookie.indexOf('=') + 1)]
    for (let place = 0; place < value.length - 1; place += 7) {
      const changed = value.slice(0, place) + (value[place] === 'A' ? 'B' : 'A') + value.slice(place + 1)
      expect([place, (await send('GET /admin/audit', { cookie: `${name}=${changed}` })).status]).toEqual([place, 401])
    }
    expect((await send('GET /admin/audit', { cookie: `${cookie}; ${cookie}` })).status).toBe(401)
  })

  it('goes on while it is used, and ends after 30 minutes without', async () => {
    let { cookie } = await signIn(keys['viewer']!)
    for (let number = 0; number < 4; number++) {
      service.advance(29 * MINUTE_MICROS)
      const response = await send('GET /admin/audit', { cookie })
      expect(response.status).toBe(200)
      cookie = response.headers.get('set-cookie')!.split(';')[0]!
    }
    service.advance(30 * MINUTE_MICROS)
    expect((await send('GET /admin/audit', { cookie })).status).toBe(401)
  })

  it('ends after 12 hours, however much it is used', async () => {
    let { cookie } = await signIn(keys['viewer']!)
    for (let number = 0; number < 24; number++) {
      service.advance(29 * MINUTE_MICROS)
      const { headers } = await send('GET /auth/session', { cookie })
      cookie = headers.get('set-cookie')!.split(';')[0]!
    }
    expect((await send('GET /admin/audit', { cookie })).status).toBe(200)
    service.advance(24 * MINUTE_MICROS)
    expect((await send('GET /admin/audit', { cookie })).status).toBe(401)
  })

  it('ends with its key', async () => {
    const { id, token } = await makeKey('viewer')
    const { cookie } = await signIn(token)
    expect((await send('GET /admin/audit', { cookie })).status).toBe(200)
    expect((await service.admin('DELETE', `/admin/api-keys/${id}`)).status).toBe(204)
    expect((await send('GET /admin/audit', { cookie })).status).toBe(401)
  })

  it('ends by signing out, which needs the token', async () => {
    const { cookie, token } = await signIn(keys['viewer']!)
    expect((await send('DELETE /auth/session', { cookie })).status).toBe(403)
    const out = await send('DELETE /auth/session', { cookie, headers: { 'X-CSRF-Token': token } })
    expect([out.status, out.headers.get('set-cookie')]).toEqual([204, expect.stringMatching(/=; .*Max-Age=0; /)])
    expect((await send('GET /admin/audit', { cookie })).status).toBe(401)
    expect((await send('DELETE /auth/session', { cookie })).status).toBe(204)
  })

  it('of a tenant reaches what its key does', async () => {
    const { token } = await makeKey('admin', { tenant: 'acme' })
    const { cookie } = await signIn(token)
    expect((await send('GET /admin/ratelimits/usage', { cookie })).status).toBe(200)
    expect((await send('GET /admin/api-keys', { cookie })).status).toBe(403)
    expect((await send('GET /admin/sessions', { cookie })).status).toBe(200)
    expect((await send('GET /admin/sessions?of=all', { cookie })).status).toBe(403)
  })
})

describe('the list of sessions', () => {
  const list = async (cookie: string, query = ''): Promise<readonly Session[]> =>
    ((await (await send(`GET /admin/sessions${query}`, { cookie })).json()) as { items: readonly Session[] }).items

  it('has those of the own key, and for admins those of all', async () => {
    const { token } = await makeKey('viewer')
    const one = await signIn(token, { headers: { 'User-Agent': 'Firefox', 'X-Forwarded-For': '2001:db8::7' } })
    const two = await signIn(token)
    const admin = await signIn(keys['admin']!)
    const own = await list(two.cookie)
    expect(own.map(({ id }) => id)).toEqual(expect.arrayContaining([one.id, two.id]))
    expect(own).toHaveLength(2)
    expect(own.filter(({ isCurrent }) => isCurrent).map(({ id }) => id)).toEqual([two.id])
    expect(own.find(({ id }) => id === one.id)).toMatchObject({ browser: 'Firefox', address: '2001:db8::/64' })
    expect((await send('GET /admin/sessions?of=all', two)).status).toBe(403)
    const all = await list(admin.cookie, '?of=all&limit=1000')
    expect(all.map(({ id }) => id)).toEqual(expect.arrayContaining([one.id, two.id, admin.id]))
  })

  it('ends one of the own key, and for admins any; both are in the audit log', async () => {
    const { token } = await makeKey('viewer')
    const [one, two] = [await signIn(token), await signIn(token)]
    const [editor, admin] = [await signIn(keys['editor']!), await signIn(keys['admin']!)]
    const end = async (by: Browser, id: string) =>
      (await send(`DELETE /admin/sessions/${id}`, { cookie: by.cookie, headers: { 'X-CSRF-Token': by.token } })).status
    expect(await end(editor, one.id)).toBe(404)
    expect(await end(two, one.id)).toBe(204)
    expect((await send('GET /admin/audit', one)).status).toBe(401)
    expect(await end(admin, two.id)).toBe(204)
    expect((await send('GET /admin/audit', two)).status).toBe(401)
    const audit = (await (await service.admin('GET', '/admin/audit?action=session.end&limit=2')).json()) as {
      items: readonly { by: string; target: string }[]
    }
    expect(audit.items).toMatchObject([
      { by: 'a admin', target: two.id },
      { by: 'a viewer', target: one.id },
    ])
  })
})
