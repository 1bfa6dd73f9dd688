import type { ApiKeyRole, ConfigStore } from '@sluice/config-store'
import { followConfig, openConfigStore } from '@sluice/config-store'
import type { ProblemDocument } from '@sluice/contract'
import { Logger, LogOutput } from '@sluice/runtime'
import { FakeClock, seededRandom } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Answer, Principal } from '../operations/handler.ts'
import { ApiKeyCache, Authenticator } from './authenticator.ts'

const AUTHOR = { name: 'test' }
const ADDRESS = '192.0.2.1'

/** An authenticator on a database of its own, with time in the hands of the test. */
class Scene {
  readonly clock = new FakeClock()
  readonly keys = new ApiKeyCache()
  readonly lines: string[] = []
  readonly config: ConfigStore
  readonly follow: () => Promise<void>
  readonly #authenticator: Authenticator

  constructor(config: ConfigStore, clock: FakeClock) {
    this.clock = clock
    this.config = config
    const { keys } = this
    const target = {
      useVersions: () => undefined,
      apply: keys.apply.bind(keys),
      beginReload: keys.beginReload.bind(keys),
      endReload: keys.endReload.bind(keys),
    }
    const follower = followConfig({ feed: config.feed, target })
    onTestFinished(() => follower.close())
    this.follow = () => follower.refresh()
    const stream = {
      write: (text: string, written: () => void) => {
        this.lines.push(text)
        written()
        return true
      },
      on: () => undefined,
      off: () => undefined,
    }
    const log = new Logger(new LogOutput({ stream, nowMs: () => 0 }))
    this.#authenticator = new Authenticator({ keys, clock, random: seededRandom(1), log, secret: new Uint8Array(32) })
  }

  static async open(): Promise<Scene> {
    const clock = new FakeClock()
    const config = await openConfigStore('sqlite::memory:', { nowMs: () => clock.nowMicros() / 1000 })
    onTestFinished(() => config.close())
    const scene = new Scene(config, clock)
    await scene.follow()
    return scene
  }

  async issue(role: ApiKeyRole, expiresAt?: number): Promise<{ id: string; token: string }> {
    const { apiKey, token } = await this.config.apiKeys.create(
      { name: `the ${role}`, role, ...(expiresAt === undefined ? {} : { expiresAt }) },
      AUTHOR,
    )
    await this.follow()
    return { id: apiKey.id, token }
  }

  ask(authorization: string | undefined, needed: ApiKeyRole = 'viewer', remoteAddress = ADDRESS): Principal | Answer {
    const headers = authorization === undefined ? {} : { authorization }
    return this.#authenticator.authenticate({ headers, remoteAddress }, needed)
  }

  /** The status that is answered with; 200 for who is let in. */
  status(authorization: string | undefined, needed: ApiKeyRole = 'viewer', remoteAddress = ADDRESS): number {
    const outcome = this.ask(authorization, needed, remoteAddress)
    return 'status' in outcome ? outcome.status : 200
  }

  problem(authorization: string | undefined, needed: ApiKeyRole = 'viewer'): Answer & { problem: ProblemDocument } {
    const outcome = this.ask(authorization, needed)
    if (!('status' in outcome)) throw new Error('It was let in.')
    expect(outcome.headers['Cache-Control']).toBe('no-store')
    return { ...outcome, problem: JSON.parse(outcome.body) }
  }
}

/** A token like `token`, with another secret. */
function withOtherSecret(token: string): string {
  return token.slice(0, -1) + (token.endsWith('0') ? '1' : '0')
}

function unknownToken(index = 0): string {
  return `slk_${String(index).padStart(12, 'A')}_${'B'.repeat(43)}`
}

describe('who is let in', () => {
  it('is the holder of a key whose role is enough', async () => {
    const scene = await Scene.open()
    const { id, token } = await scene.issue('editor')
    expect(scene.ask(`Bearer ${token}`, 'editor')).toEqual({ id, name: 'the editor', role: 'editor' })
    expect(scene.status(`bearer ${token}`, 'viewer')).toBe(200)
    expect(scene.status(`Bearer   ${token} `, 'none')).toBe(200)
  })

  it.each<[ApiKeyRole, Record<ApiKeyRole, number>]>([
    ['none', { none: 200, viewer: 403, editor: 403, admin: 403 }],
    ['viewer', { none: 200, viewer: 200, editor: 403, admin: 403 }],
    ['editor', { none: 200, viewer: 200, editor: 200, admin: 403 }],
    ['admin', { none: 200, viewer: 200, editor: 200, admin: 200 }],
  ])('with the role %s may do what it says', async (role, statuses) => {
    const scene = await Scene.open()
    const { token } = await scene.issue(role)
    for (const [needed, status] of Object.entries(statuses)) {
      expect([needed, scene.status(`Bearer ${token}`, needed as ApiKeyRole)]).toEqual([needed, status])
    }
  })

  it('gets 403 with the missing role', async () => {
    const scene = await Scene.open()
    const { token } = await scene.issue('viewer')
    const { problem, headers } = scene.problem(`Bearer ${token}`, 'admin')
    expect(problem).toMatchObject({ status: 403, code: 'SLUICE_HTTP_FORBIDDEN' })
    expect(problem.detail).toContain('"admin"')
    expect(headers['WWW-Authenticate']).toBe('Bearer realm="sluice", error="insufficient_scope", scope="admin"')
  })

  it('is anonymous without a key', async () => {
    const { problem, headers } = (await Scene.open()).problem(undefined)
    expect(problem).toMatchObject({ status: 401, code: 'SLUICE_HTTP_UNAUTHORIZED' })
    expect(headers['WWW-Authenticate']).toBe('Bearer realm="sluice"')
  })

  it.each([
    'Bearer',
    'Bearer ',
    'Bearer slk_',
    'Bearer slk_abc',
    'Basic c2xrOnNlY3JldA==',
    'slk_AAAAAAAAAAAA_BBBB',
    'Bearer slk_AAAAAAAAAAAA_BB BB',
    'Bearer slk_AAAAAAAAAAAA_B\u00e4r',
    `Bearer slk_A_${'B'.repeat(5000)}`,
  ])('is anonymous with the header %j', async (authorization) => {
    const { problem, headers } = (await Scene.open()).problem(authorization)
    expect(problem).toMatchObject({ status: 401, code: 'SLUICE_HTTP_UNAUTHORIZED' })
    expect(headers['WWW-Authenticate']).toBe('Bearer realm="sluice", error="invalid_token"')
    expect(problem.detail).not.toContain('BBBB')
  })

  it('gets the same answer for an unknown key and for a wrong secret', async () => {
    const scene = await Scene.open()
    const { token } = await scene.issue('admin')
    const wrong = scene.problem(`Bearer ${withOtherSecret(token)}`)
    const unknown = scene.problem(`Bearer ${unknownToken()}`)
    expect(wrong).toEqual(unknown)
    expect(wrong.problem.status).toBe(401)
  })

  it('is not the holder of a key that has ended, from that instant on', async () => {
    const scene = await Scene.open()
    const endsAt = scene.clock.nowMicros() / 1000 + 1000
    const { token } = await scene.issue('admin', endsAt)
    scene.clock.advance(999)
    expect(scene.status(`Bearer ${token}`)).toBe(200)
    scene.clock.advance(1)
    expect(scene.problem(`Bearer ${token}`).problem.detail).toContain('has ended')
  })

  it('is not the holder of a key that was revoked', async () => {
    const scene = await Scene.open()
    const { id, token } = await scene.issue('editor')
    await scene.config.apiKeys.revoke(id, AUTHOR)
    await scene.follow()
    expect(scene.problem(`Bearer ${token}`).problem).toMatchObject({
      status: 401,
      detail: expect.stringContaining('revoked'),
    })
  })

  it('is the holder of a rotated key until the overlap is over, and of the new one', async () => {
    const scene = await Scene.open()
    const { id, token } = await scene.issue('admin')
    const { token: newToken } = await scene.config.apiKeys.rotate(id, AUTHOR, 5000)
    await scene.follow()
    expect([scene.status(`Bearer ${token}`), scene.status(`Bearer ${newToken}`)]).toEqual([200, 200])
    scene.clock.advance(5000)
    expect([scene.status(`Bearer ${token}`), scene.status(`Bearer ${newToken}`)]).toEqual([401, 200])
  })

  it('is accepted while the database is unreachable', async () => {
    const scene = await Scene.open()
    const { token } = await scene.issue('admin')
    await scene.config.close()
    await expect(scene.follow()).rejects.toThrow()
    expect(scene.status(`Bearer ${token}`, 'admin')).toBe(200)
    expect(scene.status(`Bearer ${withOtherSecret(token)}`)).toBe(401)
  })

  it('has to wait while no keys were loaded', () => {
    const log = new Logger(new LogOutput({ stream: { write: () => true, on: () => 0, off: () => 0 }, nowMs: () => 0 }))
    const parts = { clock: new FakeClock(), random: seededRandom(1), log, secret: new Uint8Array(32) }
    const authenticator = new Authenticator({ keys: new ApiKeyCache(), ...parts })
    const headers = { authorization: `Bearer ${unknownToken()}` }
    const answer = authenticator.authenticate({ headers, remoteAddress: ADDRESS }, 'viewer')
    expect(answer).toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
  })
})

describe('failed attempts', () => {
  it('of one key id are limited, from wherever they come, and say when to come back', async () => {
    const scene = await Scene.open()
    const { token } = await scene.issue('admin')
    const wrong = `Bearer ${withOtherSecret(token)}`
    const statuses = Array.from({ length: 12 }, (_, index) => scene.status(wrong, 'viewer', `198.51.100.${index}`))
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429])
    const { problem, headers } = scene.problem(wrong)
    expect(problem.code).toBe('SLUICE_HTTP_TOO_MANY_FAILURES')
    expect(headers['Retry-After']).toBe('6')
    scene.clock.advance(5999)
    expect(scene.status(wrong)).toBe(429)
    scene.clock.advance(1)
    expect(scene.status(wrong)).toBe(401)
  })

  it('of one address are limited, whatever keys they try', async () => {
    const scene = await Scene.open()
    const statuses = Array.from({ length: 22 }, (_, index) => scene.status(`Bearer ${unknownToken(index)}`))
    expect(statuses).toEqual([...Array.from({ length: 20 }, () => 401), 429, 429])
    expect(scene.status(`Bearer ${unknownToken(99)}`, 'viewer', '192.0.2.2')).toBe(401)
  })

  it('of addresses of one IPv6 network count together', async () => {
    const scene = await Scene.open()
    const status = (index: number, address: string): number =>
      scene.status(`Bearer ${unknownToken(index)}`, 'viewer', address)
    for (let index = 0; index < 20; index++) expect(status(index, `2001:db8::${index}`)).toBe(401)
    expect(status(20, '2001:db8:0:0:ffff::1')).toBe(429)
    expect(status(21, '2001:db8:0:1::1')).toBe(401)
  })

  it('with headers that hold no key count for the address', async () => {
    const scene = await Scene.open()
    for (let count = 0; count < 20; count++) expect(scene.status('Basic c2xrOnNlY3JldA==')).toBe(401)
    expect(scene.status('Bearer nothing')).toBe(429)
  })

  it('do not keep out who has the right key, which costs nothing', async () => {
    const scene = await Scene.open()
    const { token } = await scene.issue('admin')
    for (let count = 0; count < 40; count++) scene.status(`Bearer ${withOtherSecret(token)}`)
    for (let count = 0; count < 40; count++) expect(scene.status(`Bearer ${token}`)).toBe(200)
    scene.clock.advance(6000)
    expect(scene.status(`Bearer ${withOtherSecret(token)}`)).toBe(401)
  })

  it('are no more for asking without a key', async () => {
    const scene = await Scene.open()
    for (let count = 0; count < 40; count++) expect(scene.status(undefined)).toBe(401)
    expect(scene.status(`Bearer ${unknownToken()}`)).toBe(401)
  })

  it('leave a line in the log without key, secret or address', async () => {
    const scene = await Scene.open()
    const { id, token } = await scene.issue('admin')
    const wrong = withOtherSecret(token)
    scene.status(`Bearer ${wrong}`, 'viewer', '203.0.113.77')
    expect(scene.lines).toHaveLength(1)
    const [line = ''] = scene.lines
    expect(JSON.parse(line)).toMatchObject({ level: 'warn', reason: 'unknown', limited: false })
    for (const secret of [id, wrong, token.slice(id.length + 1), '203.0.113.77']) expect(line).not.toContain(secret)
  })
})
