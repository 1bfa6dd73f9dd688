import { hash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { FakeClock, FakeTimers, START_MICROS, seededRandom } from '@sluice/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Caller, CallerAnswer, CallerRequest } from './caller.ts'
import { CredentialIdentifier, type IdentifierParts, type IdentityConfig } from './identifier.ts'
import { type TestIssuer, testIssuer } from './issuer.test.support.ts'

const SECRET = 'slk_live_3f9a'
const NOW = START_MICROS / 1_000_000
const hashOf = (key: string): string => `sha256:${hash('sha256', key)}`
const CONSUMERS = [
  { name: 'acme', keys: [hashOf(SECRET), hashOf('second')], tier: 'gold', tenant: 't-acme' },
  { name: 'beta', keys: [hashOf('beta-key')] },
]
const PEER = '203.0.113.9'

type Headers = Readonly<Record<string, string | readonly string[]>>

function requestOf(headers: Headers = {}, peerAddress: string | undefined = PEER): CallerRequest {
  return { peerAddress, header: (name) => headers[name] }
}

function scene(config: IdentityConfig = { consumers: CONSUMERS }, more: Partial<IdentifierParts> = {}) {
  const clock = new FakeClock()
  const failures: string[] = []
  const parts: IdentifierParts = {
    clock,
    random: seededRandom(1),
    timers: new FakeTimers(clock),
    onFailure: (failure) => void failures.push(failure),
    ...more,
  }
  const identifier = new CredentialIdentifier(config, parts)
  const identify = (headers?: Headers, auth: 'required' | 'optional' | 'none' = 'optional', peer?: string) =>
    identifier.identify(requestOf(headers, peer), auth)
  return { clock, parts, failures, identifier, identify }
}

function headersOf(answer: CallerAnswer | Promise<CallerAnswer>): Readonly<Record<string, string>> {
  const flat = (answer as Caller).upstreamHeaders ?? []
  return Object.fromEntries(
    flat.flatMap((name, index) => (index % 2 === 0 ? [[name.toLowerCase(), flat[index + 1]!]] : [])),
  )
}

describe('a key of a consumer', () => {
  it('gives its name, tier and tenant, and a fingerprint of itself', () => {
    const { identify } = scene()
    const answer = identify({ authorization: `Bearer ${SECRET}` }, 'required')
    const apiKey = hash('sha256', SECRET).slice(0, 16)
    expect(answer).toMatchObject({ ip: PEER, user: 'acme', apiKey, tenant: 't-acme', tier: 'gold' })
    expect(headersOf(answer)).toEqual({
      'x-user-id': 'acme',
      'x-tenant-id': 't-acme',
      'x-tier': 'gold',
      'x-api-key-id': apiKey,
    })
    expect(JSON.stringify(answer)).not.toContain(SECRET)
    expect(identify({ 'x-api-key': 'beta-key' })).toMatchObject({ user: 'beta', tenant: undefined, tier: undefined })
    expect(identify({ authorization: 'ApiKey second' })).toMatchObject({ user: 'acme' })
  })

  it('that no consumer has is answered with 401, also where authentication is optional', () => {
    const { identify, failures } = scene()
    for (const auth of ['required', 'optional'] as const) {
      expect(identify({ authorization: 'Bearer wrong' }, auth)).toEqual({
        status: 401,
        challenge: 'Bearer realm="gateway", error="invalid_token"',
        detail: 'There is no such key. Look whether it is complete, and of this gateway.',
      })
    }
    expect(failures).toEqual(['unknown-key', 'unknown-key'])
  })

  it('is known by all of it, also after it was presented', () => {
    const { identify } = scene()
    for (let round = 0; round < 2; round++) {
      expect(identify({ 'x-api-key': 'beta-key' })).toMatchObject({ user: 'beta' })
      for (const other of ['beta-ke', 'beta-key2', 'beta-kez', 'Beta-key', 'eta-key']) {
        expect(identify({ 'x-api-key': other })).toMatchObject({ status: 401 })
      }
    }
  })

  it('is read from the configured headers only', () => {
    const { identify, identifier } = scene({ consumers: CONSUMERS, keyHeaders: ['X-Acme-Key'] })
    expect(identify({ 'x-acme-key': SECRET, authorization: 'Bearer of-the-upstream' })).toMatchObject({ user: 'acme' })
    expect(identify({ authorization: `Bearer ${SECRET}` })).toMatchObject({ user: undefined })
    expect([identifier.removedHeaders.has('x-acme-key'), identifier.removedHeaders.has('authorization')]).toEqual([
      true,
      false,
    ])
  })

  it.each([
    [{ authorization: [`Bearer ${SECRET}`, 'Bearer second'] }],
    [{ authorization: `Bearer ${SECRET}`, 'x-api-key': 'second' }],
    [{ authorization: `Bearer ${SECRET} ${SECRET}` }],
    [{ authorization: SECRET }],
    [{ authorization: 'Bearer' }],
    [{ authorization: '' }],
    [{ 'x-api-key': '' }],
    [{ 'x-api-key': [SECRET, 'other'] }],
    [{ 'x-api-key': `${SECRET}, ${SECRET}` }],
    [{ authorization: `Bearer ${'x'.repeat(9000)}` }],
  ] as readonly [Headers][])('is not chosen among several, nor guessed: %j', (headers) => {
    const { identify, failures } = scene()
    expect(identify(headers)).toMatchObject({ status: 401 })
    expect(failures).toEqual(['unreadable'])
  })

  it('may be there twice if it is the same', () => {
    const { identify } = scene()
    const both = { authorization: [`Bearer ${SECRET}`, `Bearer ${SECRET}`], 'x-api-key': SECRET }
    expect(identify(both)).toMatchObject({ user: 'acme' })
  })

  it.each(['sha256:12', SECRET, `md5:${'0'.repeat(64)}`, `sha256:${'g'.repeat(64)}`])(
    'has to be configured by its hash, and is not repeated in the error: %s',
    (key) => {
      const consumers = [{ name: 'acme', keys: [key] }]
      const thrown = (): unknown => scene({ consumers })
      expect(thrown).toThrow('SLUICE_INVALID_OPTION')
      expect(thrown).not.toThrow(SECRET)
    },
  )

  it('belongs to one consumer', () => {
    const consumers = [...CONSUMERS, { name: 'copy', keys: [hashOf(SECRET).toUpperCase().replace('SHA', 'sha')] }]
    expect(() => scene({ consumers })).toThrow('the consumers "acme" and "copy" have the same key')
  })
})

describe('without a credential', () => {
  it('a caller is its address, or gets 401 where one is required', () => {
    const { identify } = scene()
    const anonymous = { ip: PEER, user: undefined, apiKey: undefined, tenant: undefined, tier: undefined }
    expect(identify({})).toEqual({ ...anonymous, upstreamHeaders: [] })
    expect(identify({}, 'required')).toMatchObject({ status: 401, challenge: 'Bearer realm="gateway"' })
    expect(scene({}).identify({}, 'required')).toMatchObject({ status: 401 })
  })

  it('of the gateway, those of the upstream are passed on', () => {
    const { identify } = scene()
    const basic = { authorization: 'Basic dXNlcjpwYXNz' }
    expect(headersOf(identify(basic))).toEqual(basic)
    expect(identify(basic, 'required')).toMatchObject({ status: 401 })
    const both = identify({ ...basic, 'x-api-key': 'beta-key' }, 'required')
    expect(both).toMatchObject({ user: 'beta' })
    expect(headersOf(both)).toMatchObject(basic)
  })
})

describe('a route without authentication', () => {
  it('passes credentials on, except keys of the gateway, and counts by address', () => {
    const { identify } = scene()
    const own = { authorization: 'Bearer of-the-upstream', 'x-api-key': 'of-the-upstream' }
    expect(headersOf(identify(own, 'none'))).toEqual(own)
    for (const key of [`Bearer ${SECRET}`, `bearer  "${SECRET}"`, SECRET, `ApiKey ${SECRET}`]) {
      const answer = identify({ authorization: key, 'x-api-key': SECRET }, 'none')
      expect(answer).toMatchObject({ ip: PEER, user: undefined, apiKey: undefined, upstreamHeaders: [] })
    }
    const lines = { authorization: ['Bearer theirs', `Bearer ${SECRET}`] }
    expect(identify(lines, 'none')).toMatchObject({ upstreamHeaders: ['authorization', 'Bearer theirs'] })
  })

  it('reads nothing where no credentials are configured', () => {
    const { identify, identifier } = scene({})
    expect(identify({ authorization: 'Bearer x' })).toMatchObject({ user: undefined, upstreamHeaders: [] })
    expect(identifier.removedHeaders.has('authorization')).toBe(false)
  })
})

describe('identity headers', () => {
  it('are removed in every spelling that servers take for the same', () => {
    const { identifier } = scene({ identityHeaders: { user: 'X-Acme-User' } })
    const removed = [...identifier.removedHeaders]
    expect(removed).toEqual(removed.map((name) => name.toLowerCase()))
    for (const name of ['x-user-id', 'x_user_id', 'x-user_id', 'x_user-id', 'x-acme-user', 'x_acme_user', 'x-tier']) {
      expect([name, identifier.removedHeaders.has(name)]).toEqual([name, true])
    }
    for (const name of ['x-tenant-id', 'x-api-key-id', 'x-consumer', 'x-consumer-username', 'x-forwarded-user']) {
      expect([name, identifier.removedHeaders.has(name)]).toEqual([name, true])
    }
  })

  it('have the configured names, and values that fit into a header', () => {
    const consumers = [{ name: 'Jürgen 100%\r\nX-Admin: 1', keys: [hashOf('k')], tenant: '\ud800' }]
    const { identify } = scene({ consumers, identityHeaders: { user: 'X-Acme-User' } })
    expect(headersOf(identify({ 'x-api-key': 'k' }))).toMatchObject({
      'x-acme-user': 'J%C3%BCrgen%20100%25%0D%0AX-Admin%3A%201',
      'x-tenant-id': '%EF%BF%BD',
    })
  })
})

describe('a token', () => {
  let issuer: TestIssuer
  const jwt = { jwks: 'https://issuer.test/keys', claims: { tier: 'plan', tenant: 'org' } }

  beforeAll(async () => {
    issuer = await testIssuer()
  })

  const readKeys = async (): Promise<string> => {
    await Promise.resolve()
    return issuer.keySet()
  }

  it('gives user, tenant and tier, and is passed on', async () => {
    const { identify, identifier } = scene({ jwt, consumers: CONSUMERS }, { readKeys })
    await identifier.start()
    const token = await issuer.sign({ sub: 'u1', plan: 'gold', org: 't1', exp: NOW + 60 })
    const first = identify({ authorization: `Bearer ${token}` }, 'required')
    expect(first).toBeInstanceOf(Promise)
    const caller = await first
    expect(caller).toMatchObject({ ip: PEER, user: 'u1', apiKey: undefined, tenant: 't1', tier: 'gold' })
    expect(headersOf(caller)).toMatchObject({ 'x-user-id': 'u1', 'x-tier': 'gold', authorization: `Bearer ${token}` })
    expect(identify({ authorization: `bearer   "${token}"` })).toEqual(caller)
    expect(identifier.keySet).toMatchObject({ keys: 1, failures: 0 })
  })

  it('whose user has the name of a consumer is not accepted: both would share counters and overrides', async () => {
    const { identify, failures } = scene({ jwt, consumers: CONSUMERS }, { readKeys })
    const token = await issuer.sign({ sub: 'acme', exp: NOW + 60 })
    for (const auth of ['required', 'optional', 'optional'] as const) {
      const answer = await identify({ authorization: `Bearer ${token}` }, auth)
      expect(answer).toMatchObject({ status: 401, detail: expect.stringContaining('the name of a consumer') })
    }
    expect(failures).toEqual(['reserved-user', 'reserved-user', 'reserved-user'])
    const other = await issuer.sign({ sub: 'Acme', exp: NOW + 60 })
    expect(await identify({ authorization: `Bearer ${other}` })).toMatchObject({ user: 'Acme' })
  })

  it('that is not valid is answered with 401, also where authentication is optional', async () => {
    const { identify, failures } = scene({ jwt }, { readKeys })
    const expired = await issuer.sign({ sub: 'u1', exp: NOW - 60 })
    expect(await identify({ authorization: `Bearer ${expired}` })).toMatchObject({
      status: 401,
      challenge: 'Bearer realm="gateway", error="invalid_token"',
      detail: 'The token is not accepted. It has expired.',
    })
    expect(await identify({ authorization: 'Bearer a.b.c' })).toMatchObject({ status: 401 })
    expect(failures).toEqual(['expired-token', 'invalid-token'])
  })

  it('is read from Authorization only', async () => {
    const { identify } = scene({ jwt, consumers: CONSUMERS }, { readKeys })
    const token = await issuer.sign({ sub: 'u1', exp: NOW + 60 })
    expect(await identify({ 'x-api-key': token })).toMatchObject({ status: 401 })
  })

  it('is answered with 503 while no key of the issuer is known, which counts as no failure', async () => {
    const { identify, failures } = scene({ jwt }, { readKeys: () => Promise.reject(new Error('down')) })
    const token = await issuer.sign({ sub: 'u1', exp: NOW + 60 })
    const answer = await identify({ authorization: `Bearer ${token}` }, 'required')
    expect(answer).toMatchObject({ status: 503, challenge: '', retryAfterSeconds: expect.any(Number) })
    expect(failures).toEqual([])
  })

  it('stays valid over a change of the configuration while the issuer is unavailable', async () => {
    let isDown = false
    const read = (): Promise<string> => (isDown ? Promise.reject(new Error('down')) : readKeys())
    const { identifier, parts } = scene({ jwt }, { readKeys: read })
    await identifier.start()
    isDown = true
    const next = new CredentialIdentifier({ jwt, trustedProxies: ['10.0.0.0/8'] }, parts, identifier)
    await next.start()
    const token = await issuer.sign({ sub: 'u1', exp: NOW + 60 })
    const request = requestOf({ authorization: `Bearer ${token}` })
    expect(await next.identify(request, 'required')).toMatchObject({ user: 'u1' })
    const moved = new CredentialIdentifier({ jwt: { jwks: 'https://other.test' } }, parts, next)
    expect(await moved.identify(request, 'required')).toMatchObject({ status: 503 })
  })
})

describe('failed authentications', () => {
  it('are limited to 20 a minute and address; valid ones go on, and so do other addresses', () => {
    const { clock, identify } = scene()
    const statuses = Array.from({ length: 25 }, (_, index) => identify({ authorization: `Bearer guess-${index}` }))
    expect(statuses.map((answer) => (answer as { status: number }).status)).toEqual([
      ...Array<number>(20).fill(401),
      ...Array<number>(5).fill(429),
    ])
    expect(statuses.at(-1)).toMatchObject({ challenge: '', retryAfterSeconds: expect.any(Number) })
    expect(identify({ authorization: `Bearer ${SECRET}` })).toMatchObject({ user: 'acme' })
    expect(identify({}, 'required')).toMatchObject({ status: 401 })
    expect(identify({ authorization: 'Bearer wrong' }, 'required', '198.51.100.1')).toMatchObject({ status: 401 })
    clock.advance(60_000)
    expect(identify({ authorization: 'Bearer wrong' })).toMatchObject({ status: 401 })
  })

  it('count by IPv6 network, and go on over a change of the configuration', () => {
    const { identifier, parts } = scene()
    const wrong = { authorization: 'Bearer wrong' }
    for (let index = 0; index < 20; index++) identifier.identify(requestOf(wrong, `2001:db8::${index}`), 'optional')
    const next = new CredentialIdentifier({ consumers: CONSUMERS }, parts, identifier)
    expect(next.identify(requestOf(wrong, '2001:db8::ffff'), 'optional')).toMatchObject({ status: 429 })
    expect(next.identify(requestOf(wrong, '2001:db8:0:1::1'), 'optional')).toMatchObject({ status: 401 })
  })
})

describe('the address of the client', () => {
  const trustedProxies = ['10.0.0.0/8', 'fd00::/8']
  const entry = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV4().map((ip) => `${ip}:8080`),
    fc.ipV6().map((ip) => `[${ip}]:443`),
    fc.constantFrom('unknown', '_hidden', '', '999.1.1.1', 'fe80::1%eth0', '127.0.0.1', '10.0.0.1', '" , "', ';;'),
    fc.string(),
  )

  it('is the rightmost one that is not a trusted proxy, whatever 1 to 50 forged entries say', () => {
    const { identify } = scene({ trustedProxies })
    const { identify: byForwarded } = scene({ trustedProxies, forwardedHeader: 'Forwarded' })
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 50 }), fc.boolean(), (forged, isSplit) => {
        const hops = [...forged, '198.51.100.7', '10.0.0.9']
        const lines = isSplit ? hops : hops.join(', ')
        expect(identify({ 'x-forwarded-for': lines }, 'optional', '10.1.1.1')).toMatchObject({ ip: '198.51.100.7' })
        expect(identify({ 'x-forwarded-for': lines }, 'optional', PEER)).toMatchObject({ ip: PEER })
        const other = { forwarded: lines, 'x-forwarded-for': '192.0.2.1' }
        expect(identify({ forwarded: lines }, 'optional', '10.1.1.1')).toMatchObject({ ip: '10.1.1.1' })
        expect(byForwarded(other, 'optional', PEER)).toMatchObject({ ip: PEER })
        const elements = forged.map((hop) => `for=${JSON.stringify(hop)}`)
        const forwarded = [...elements, 'for=198.51.100.7;proto=https', 'for="[fd00::9]:80"'].join(', ')
        expect(byForwarded({ forwarded }, 'optional', 'fd00::1')).toMatchObject({ ip: '198.51.100.7' })
      }),
      { numRuns: 300 },
    )
  })

  it.each([
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::ffff:102:304', '1.2.3.4'],
    ['1.2.3.4', '1.2.3.4'],
    ['2001:DB8:0::1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['1.2.3.256', undefined],
  ])('%s is %s', (peer, ip) => {
    expect(scene().identify({}, 'optional', peer)).toMatchObject({ ip })
  })

  it('is unknown for a connection without one', () => {
    const { identifier } = scene()
    const request = { peerAddress: undefined, header: () => undefined }
    expect(identifier.identify(request, 'optional')).toMatchObject({ ip: undefined })
    const wrong = { peerAddress: undefined, header: () => 'Bearer wrong' }
    expect(identifier.identify(wrong, 'optional')).toMatchObject({ status: 401 })
  })
})

describe('one credential in 20 spellings on the wire', () => {
  const SPELLINGS = [
    ` Bearer ${SECRET}`,
    `Bearer ${SECRET}`,
    ` bearer ${SECRET}`,
    ` BEARER ${SECRET}`,
    ` bEaReR ${SECRET}`,
    ` ApiKey ${SECRET}`,
    ` apikey\t${SECRET}`,
    ` Bearer  ${SECRET}`,
    ` Bearer     ${SECRET}`,
    ` Bearer\t${SECRET}`,
    ` Bearer \t ${SECRET}`,
    ` Bearer\t\t${SECRET}`,
    `   Bearer ${SECRET}`,
    `\tBearer ${SECRET}`,
    ` Bearer ${SECRET} `,
    ` Bearer ${SECRET}\t`,
    ` \t bearer\t ${SECRET} \t `,
    ` Bearer "${SECRET}"`,
    ` BEARER   "${SECRET}"  `,
    ` Bearer "slk\\_live_3f9a"`,
  ] as const
  let server: Server
  const answers: CallerAnswer[] = []

  beforeAll(async () => {
    const { identifier } = scene()
    server = createServer(async ({ headersDistinct, socket }, response) => {
      const request = { peerAddress: socket.remoteAddress, header: (name: string) => headersDistinct[name] }
      answers.push(await identifier.identify(request, 'optional'))
      response.end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
  })

  afterAll(async () => {
    server.close()
    await once(server, 'close')
  })

  async function answerFor(header: string): Promise<CallerAnswer> {
    answers.length = 0
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.end(`GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${header}\r\n\r\n`)
    socket.resume()
    await once(socket, 'close')
    expect(answers).toHaveLength(1)
    return answers[0]!
  }

  it('is one caller', async () => {
    expect(new Set(SPELLINGS).size).toBe(20)
    const callers = new Set<string>()
    for (const spelling of SPELLINGS) callers.add(JSON.stringify(await answerFor(`Authorization:${spelling}`)))
    for (const name of ['X-API-Key', 'x-api-key', 'X-Api-KEY']) {
      callers.add(JSON.stringify(await answerFor(`${name}: ${SECRET}`)))
    }
    expect([...callers].map((caller) => JSON.parse(caller).user)).toEqual(['acme'])
  })

  it('is anonymous when it is not verified', async () => {
    for (const value of [` Bearer ${SECRET.toUpperCase()}`, ` Bearer ${SECRET} ${SECRET}`, ` ${SECRET}`]) {
      expect([value, await answerFor(`Authorization:${value}`)]).toMatchObject([value, { status: 401 }])
    }
    expect(await answerFor(`Authorization: n Bearer ${SECRET}`)).toMatchObject({ user: undefined, apiKey: undefined })
  })
})

it('answers whatever is sent, and never with a user that is not verified', async () => {
  const issuer = await testIssuer()
  const readKeys = (): Promise<string> => Promise.resolve(issuer.keySet())
  const { identify } = scene({ consumers: CONSUMERS, jwt: { jwks: 'x' } }, { readKeys, countFailure: () => 0 })
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom('Bearer', 'Bearer a.b.c', 'Basic x', `Bearer ${SECRET}x`, 'bearer "', '"\\', 'eyJ.eyJ.'),
    fc.string().map((text) => `Bearer ${text}`),
  )
  const header = fc.option(fc.oneof(value, fc.array(value, { maxLength: 3 })), { nil: undefined })
  await fc.assert(
    fc.asyncProperty(header, header, async (authorization, key) => {
      const headers = {
        ...(authorization !== undefined && { authorization }),
        ...(key !== undefined && { 'x-api-key': key }),
      }
      for (const auth of ['required', 'optional', 'none'] as const) {
        const answer = await identify(headers, auth)
        if ('status' in answer) expect(answer.status).toBe(401)
        else expect(answer.user).toBeUndefined()
        if (auth === 'none') expect(answer).not.toHaveProperty('status')
      }
    }),
    { numRuns: 500 },
  )
})
