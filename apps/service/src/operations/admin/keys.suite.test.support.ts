import type { Operation } from '@sluice/contract'
import { systemMonotonicMs } from '@sluice/core/internal'
import { FakeClock } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { AnyHandler } from '../handler.ts'
import { jsonAnswer } from '../handler.ts'
import type { ReadAnswer } from './admin-node.test.support.ts'
import { AdminNode, ALL_OPERATIONS, allItems, itemsOf, startWithKeys, wrongPaths } from './admin-node.test.support.ts'
import type { TestDatabases } from './database.test.support.ts'
import { EXAMPLE_CALLS, ISSUED } from './example-calls.test.support.ts'

const LONGEST_MS = 1000

/** Milliseconds until a node answers a token with this status; fails after a second. */
async function untilStatus(node: AdminNode, token: string, status: number): Promise<number> {
  const startedMs = systemMonotonicMs()
  for (;;) {
    const answer = await node.send('GET /admin/incident', { token })
    const tookMs = systemMonotonicMs() - startedMs
    if (answer.status === status) return tookMs
    if (tookMs > LONGEST_MS) throw new Error(`after ${LONGEST_MS} ms the answer still is ${answer.status}`)
    // Failures are limited by the clock of the node, which the test moves.
    node.clock.advance(60_000)
  }
}

function issuedBy({ body }: ReadAnswer): { readonly id: string; readonly token: string } {
  const { apiKey, token } = body as { apiKey: { id: string }; token: string }
  return { id: apiKey.id, token }
}

/** What the admin API promises about API keys, and about what becomes of secrets. */
export function describeKeys(databases: TestDatabases): void {
  describe('API keys', () => {
    it('are made, and shown with their token once', async () => {
      const node = await startWithKeys(await (await databases.create())())
      const made = await node.ask('POST /admin/api-keys', { body: { name: 'deploy', role: 'editor', tenant: 'acme' } })
      expect(made.status).toBe(201)
      expect(made.headers.get('cache-control')).toBe('no-store')
      const { id, token } = issuedBy(made)
      expect(token.startsWith(`${id}_`)).toBe(true)
      expect((await node.ask('GET /admin/members', { token })).status).toBe(200)
      const listed = await node.ask('GET /admin/api-keys')
      expect(itemsOf(listed)).toContainEqual(made.body['apiKey'])
      expect(made.body['apiKey']).toMatchObject({ id, name: 'deploy', role: 'editor', tenant: 'acme' })
      expect(listed.text).not.toContain(token)
      expect(listed.text).not.toContain('ash')
      expect((await allItems(node, '/admin/api-keys', 2)).map((page) => page.length)).toEqual([2, 2, 1])
    })

    it.each([
      [{ name: 'x', role: 'root' }, '/role'],
      [{ name: '', role: 'viewer' }, '/name'],
      [{ role: 'viewer' }, '/name'],
      [{ name: 'x', role: 'viewer', secret: 'mine' }, '/secret'],
      [{ name: 'x', role: 'viewer', expiresAt: 'never' }, '/expiresAt'],
      // In seconds, which is 1970.
      [{ name: 'x', role: 'viewer', expiresAt: 1_794_827_611 }, '/expiresAt'],
    ])('are not made of %j', async (body, path) => {
      const node = await startWithKeys(await (await databases.create())())
      const wrong = await node.ask('POST /admin/api-keys', { body })
      expect([wrong.status, wrongPaths(wrong)]).toEqual([400, [path]])
    })

    it('are rotated: the new one works at once, the old one for as long as is said', async () => {
      const clock = new FakeClock()
      const config = await (await databases.create())({ nowMs: () => clock.nowMicros() / 1000 })
      const node = await startWithKeys(config, { clock })
      const { id, token } = issuedBy(
        await node.ask('POST /admin/api-keys', { body: { name: 'deploy', role: 'viewer' } }),
      )
      const rotated = await node.ask(`POST /admin/api-keys/${id}/rotate`, { body: { overlapMs: 5000 } })
      expect(rotated).toMatchObject({
        status: 201,
        body: { apiKey: { rotatedFrom: id, role: 'viewer', name: 'deploy' } },
      })
      const { token: newToken } = issuedBy(rotated)
      expect((await node.ask('GET /admin/incident', { token: newToken })).status).toBe(200)
      node.clock.advance(4999)
      expect((await node.ask('GET /admin/incident', { token })).status).toBe(200)
      node.clock.advance(1)
      expect((await node.ask('GET /admin/incident', { token })).status).toBe(401)
      expect((await node.ask(`POST /admin/api-keys/${id}/rotate`, { body: {} })).status).toBe(409)
      expect((await node.ask('POST /admin/api-keys/slk_unknown/rotate', { body: {} })).status).toBe(404)
    })

    it('are revoked, and rejected from the answer on', async () => {
      const node = await startWithKeys(await (await databases.create())())
      const { id, token } = issuedBy(
        await node.ask('POST /admin/api-keys', { body: { name: 'deploy', role: 'admin' } }),
      )
      expect((await node.ask(`DELETE /admin/api-keys/${id}`)).status).toBe(204)
      expect((await node.ask('GET /admin/incident', { token })).status).toBe(401)
      expect((await node.ask(`DELETE /admin/api-keys/${id}`)).status).toBe(404)
      expect((await node.ask('DELETE /admin/api-keys/slk_unknown')).status).toBe(404)
    })

    it('of which the last admin is left are not revoked', async () => {
      const node = await startWithKeys(await (await databases.create())())
      const [id = ''] = node.tokens.admin.split(/_(?=[^_]+$)/)
      const rejected = await node.ask(`DELETE /admin/api-keys/${id}`)
      expect(rejected).toMatchObject({ status: 409, body: { code: 'SLUICE_HTTP_CONFLICT' } })
      const expiresAt = node.clock.nowMicros() / 1000 + 3_153_600_000_000
      const short = { name: 'for a time', role: 'admin', expiresAt }
      expect((await node.ask('POST /admin/api-keys', { body: short })).status).toBe(201)
      expect((await node.ask(`DELETE /admin/api-keys/${id}`)).body['detail']).toContain('does not expire')
      const { token } = issuedBy(await node.ask('POST /admin/api-keys', { body: { name: 'second', role: 'admin' } }))
      expect((await node.ask(`DELETE /admin/api-keys/${id}`)).status).toBe(204)
      expect((await node.ask('GET /admin/api-keys', { token })).status).toBe(200)
    })

    it('that are revoked or rotated end on another node within a second', async () => {
      const open = await databases.create()
      const one = await startWithKeys(await open())
      const other = await AdminNode.start({ config: await open() })
      const issue = async (): Promise<{ id: string; token: string }> =>
        issuedBy(await one.ask('POST /admin/api-keys', { body: { name: 'short', role: 'viewer' } }))
      for (const end of ['DELETE', 'POST'] as const) {
        const { id, token } = await issue()
        await untilStatus(other, token, 200)
        const path = end === 'DELETE' ? `/admin/api-keys/${id}` : `/admin/api-keys/${id}/rotate`
        await one.ask(`${end} ${path}`, end === 'DELETE' ? {} : { body: { overlapMs: 0 } })
        expect(await untilStatus(other, token, 401)).toBeLessThan(LONGEST_MS)
      }
    })
  })

  describe('two keys of one name', () => {
    it('are two in the audit log, in what they change and in what they reset', async () => {
      const node = await startWithKeys(await (await databases.create())())
      const body = { name: 'the admin', role: 'admin' }
      const { id, token } = issuedBy(await node.ask('POST /admin/api-keys', { body }))
      const member = { dimension: 'user', entity: 'u1', tier: 'free' }
      await node.ask('PUT /admin/members', { body: member, token })
      await node.ask('POST /admin/reset', { body: { userId: 'u1' }, token })
      await node.ask('PUT /admin/members', { body: { ...member, entity: 'u2' } })
      const of = async (keyId: string): Promise<unknown> =>
        (await node.ask(`GET /admin/audit?by=the%20admin&keyId=${keyId}`)).body['items']
      expect(await of(id)).toMatchObject([
        { by: 'the admin', keyId: id, action: 'counters.reset' },
        { by: 'the admin', keyId: id, action: 'member.put', target: 'user:u1' },
      ])
      const first = idIn(node.tokens.admin)
      expect(await of(first)).toMatchObject([
        { by: 'the admin', keyId: first, action: 'member.put', target: 'user:u2' },
        { by: 'the admin', keyId: first, action: 'api-key.create', target: id },
      ])
      expect(node.lines.filter((line) => line.includes('counters were reset')).join()).toContain(id)
    })
  })

  describe('every operation', () => {
    it('of the admin API has an example here', () => {
      const own = ALL_OPERATIONS.filter(isOwn).map(({ id }) => id)
      expect(EXAMPLE_CALLS.map(({ id }) => id).sort()).toEqual(own.sort())
    })

    it('that changes something is in the audit log under the name of the key, and no secret is anywhere', async () => {
      const config = await (await databases.create())()
      const node = await startWithKeys(config)
      const texts: string[] = []
      const tokens: string[] = Object.values(node.tokens)
      let issued = ''
      for (const { id, target, body, audited = [] } of EXAMPLE_CALLS) {
        const [last] = (await config.audit.list({ limit: 1 })).items
        const answer = await node.ask(target.replace(ISSUED, issued), body === undefined ? {} : { body })
        expect([id, answer.status]).toEqual([id, expect.toSatisfy((status: number) => status < 300)])
        const { items } = await config.audit.list({ limit: 10 })
        const fresh = items.filter(({ number }) => number > (last?.number ?? 0))
        expect([id, fresh.map(({ action }) => action)]).toEqual([id, audited])
        for (const { by, keyId } of fresh) expect([by, keyId]).toEqual(['the admin', idIn(node.tokens.admin)])
        if (answer.text.includes('"token"')) {
          const { token, id: newId } = issuedBy(answer)
          issued = newId
          tokens.push(token)
        } else texts.push(answer.text)
      }
      texts.push((await node.ask('GET /admin/audit?limit=1000')).text, (await node.ask('GET /admin/api-keys')).text)
      const said = [...texts, ...node.lines].join('\n')
      expect(node.lines.join()).toContain('counters were reset')
      expect(tokens).toHaveLength(6)
      for (const token of tokens) expect(said).not.toContain(token.slice(token.lastIndexOf('_') + 1))
      expect(said).not.toMatch(/secret_?hash/i)
    })

    it('that removes says when there was nothing to remove', async () => {
      const node = await startWithKeys(await (await databases.create())())
      const removals = EXAMPLE_CALLS.filter(({ target }) => target.startsWith('DELETE '))
      expect(removals.map(({ id }) => id)).toEqual(
        expect.arrayContaining(
          ALL_OPERATIONS.filter((one) => one.method === 'DELETE' && isOwn(one)).map(({ id }) => id),
        ),
      )
      for (const { id, target } of removals) {
        const { status, body } = await node.ask(target.replace(ISSUED, 'slk_unknown'))
        expect([id, status, body['code']]).toEqual([id, 404, 'SLUICE_HTTP_NOT_FOUND'])
        expect(body['detail']).toMatch(/^There is no /)
      }
    })

    it('asks for the role that the table says', async () => {
      const stub: AnyHandler = () => jsonAnswer(200, '{}')
      const others = Object.fromEntries(ALL_OPERATIONS.map(({ id }) => [id, stub]))
      const node = await startWithKeys(await (await databases.create())(), { others })
      const examples = new Map(EXAMPLE_CALLS.map((call) => [call.id as string, call]))
      let issued = ''
      for (const operation of inOrderOf(ALL_OPERATIONS)) {
        const example = examples.get(operation.id)
        const target = (example?.target ?? targetOf(operation)).replace(ISSUED, issued)
        const body = example === undefined ? bodyOf(operation) : example.body
        const statusOf = async (token: string | null): Promise<number> => {
          // Failures are limited: each operation has a minute of its own.
          node.clock.advance(60_000)
          const response = await node.send(target, { token, ...(body === undefined ? {} : { body }) })
          const text = await response.text()
          if (text.includes('"token":"slk_')) issued = (JSON.parse(text) as { apiKey: { id: string } }).apiKey.id
          if (response.status >= 400) expect(response.headers.get('content-type')).toBe('application/problem+json')
          return response.status
        }
        const wrong = `${node.tokens.admin.slice(0, -4)}AAAA`
        const keys = [null, wrong, node.tokens.none, node.tokens.viewer, node.tokens.editor, node.tokens.admin]
        const statuses: number[] = []
        for (const key of keys) statuses.push(classOf(await statusOf(key)))
        expect([operation.id, statuses]).toEqual([operation.id, EXPECTED[operation.role]])
      }
    })
  })
}

const ALLOWED = 200

/** What is answered without a key, with a wrong one, and with one of the roles none, viewer, editor and admin. */
const EXPECTED: Readonly<Record<Operation['role'], readonly number[]>> = {
  none: [ALLOWED, ALLOWED, ALLOWED, ALLOWED, ALLOWED, ALLOWED],
  viewer: [401, 401, 403, ALLOWED, ALLOWED, ALLOWED],
  editor: [401, 401, 403, 403, ALLOWED, ALLOWED],
  admin: [401, 401, 403, 403, 403, ALLOWED],
}

/** What counts is who is let in: a change may not be possible a second time. */
function classOf(status: number): number {
  return [200, 201, 204, 400, 404, 409].includes(status) ? ALLOWED : status
}

/** Those with an example first, in the order of the examples. */
function inOrderOf(operations: readonly Operation[]): readonly Operation[] {
  const places = new Map<string, number>(EXAMPLE_CALLS.map(({ id }, index) => [id, index]))
  const placeOf = ({ id }: Operation): number => places.get(id) ?? EXAMPLE_CALLS.length
  return [...operations].sort((one, other) => placeOf(one) - placeOf(other))
}

/** Alerts, sessions and traffic are others' work. */
function isOwn({ id, role, tag }: Operation): boolean {
  if (role === 'none' || tag === 'alerts' || tag === 'sessions') return false
  return tag !== 'monitoring' || id === 'explain' || id === 'listAudit'
}

/** The id of the key that a token is of. */
function idIn(token: string): string {
  return token.slice(0, token.lastIndexOf('_'))
}

function targetOf({ method, path }: Operation): string {
  return `${method} ${path.replaceAll(/\{\w+\}/g, '1')}`
}

function bodyOf({ body }: Operation): unknown {
  return body === undefined ? undefined : {}
}
