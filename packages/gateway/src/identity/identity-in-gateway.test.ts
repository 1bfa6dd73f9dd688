import { hash } from 'node:crypto'
import { systemClock, systemTimers } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import { seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { configOf, RawClient, routeOf, startGateway, startUpstream, until } from '../gateway.test.support.ts'
import { CredentialIdentifier, type IdentifierParts, type IdentityConfig } from './identifier.ts'

const PARTS: IdentifierParts = { clock: systemClock, random: seededRandom(1), timers: systemTimers }
const hashOf = (key: string): string => `sha256:${hash('sha256', key)}`

const RULES: RuleSet = {
  rules: [
    { resource: '/*', dimension: 'user', algorithm: 'fixed-window', limit: 2, window: '1h' },
    { resource: '/*', dimension: 'ip', algorithm: 'fixed-window', limit: 100, window: '1h' },
  ],
}

async function scene(identity: IdentityConfig, auth: 'required' | 'optional' | 'none' = 'optional') {
  const app = await startUpstream()
  const config = configOf([routeOf({ auth })], { app: [app.url] })
  const identifier = new CredentialIdentifier(identity, PARTS)
  const started = await startGateway({ config, identifier, ruleSet: RULES })
  const ask = async (headers: Readonly<Record<string, string>> = {}): Promise<Response> => {
    const response = await fetch(`${started.origin}/a`, { headers })
    await response.arrayBuffer()
    return response
  }
  return { ...started, app, config, identifier, ask }
}

describe('an upstream', () => {
  it('gets the identity from the gateway alone, and no key', async () => {
    const { app, port } = await scene({ consumers: [{ name: 'acme', keys: [hashOf('k1')], tier: 'gold' }] })
    const client = new RawClient(port)
    client.send(
      'GET /a HTTP/1.1\r\nHost: a\r\nX-API-Key: k1\r\nX-User-Id: admin\r\nX_User_Id: admin\r\nx-tier: free\r\n' +
        'X-Consumer-Username: admin\r\nX-Tenant-ID: t\r\nConnection: close, X-Tier\r\n\r\n',
    )
    await client.until('ok')
    const { headers, rawHeaders } = app.received[0]!
    expect(headers).toMatchObject({ 'x-user-id': 'acme', 'x-tier': 'gold' })
    expect(rawHeaders.filter((text) => /admin|^k1$|x-api-key$|tenant|consumer/i.test(text))).toEqual([])
    expect(rawHeaders.filter((text) => /^x.user.id$/i.test(text))).toHaveLength(1)
  })

  it('gets the credentials that are its own', async () => {
    const { app, ask } = await scene({ consumers: [{ name: 'acme', keys: [hashOf('k1')] }] }, 'none')
    await ask({ authorization: 'Bearer of-the-upstream' })
    await ask({ authorization: 'Bearer k1' })
    expect(app.received.map(({ headers }) => headers.authorization)).toEqual(['Bearer of-the-upstream', undefined])
  })

  it.each(['optional', 'none'] as const)('gets no credential that Connection names: auth %s', async (auth) => {
    const { app, port } = await scene({ consumers: [{ name: 'acme', keys: [hashOf('k1')] }] }, auth)
    const client = new RawClient(port)
    const send = (more: string): void => void client.send(`GET / HTTP/1.1\r\nHost: a\r\n${more}\r\n`)
    send('Authorization: Basic of-the-upstream\r\nConnection: keep-alive, Authorization\r\n')
    await until(() => app.received.length === 1)
    send('Authorization: Basic of-the-upstream\r\nConnection: keep-alive\r\n')
    await until(() => app.received.length === 2)
    expect(app.received.map(({ headers }) => headers.authorization)).toEqual([undefined, 'Basic of-the-upstream'])
  })
})

describe('a caller', () => {
  it('has one counter for all its keys and spellings, shared with no other consumer', async () => {
    const { ask, app } = await scene({ consumers: [{ name: 'acme', keys: [hashOf('k1'), hashOf('k2')] }] })
    const statuses = [
      await ask({ 'x-api-key': 'k1' }),
      await ask({ authorization: 'bearer  "k2"' }),
      await ask({ authorization: 'Bearer k1' }),
      await ask({ 'x-user-id': 'acme' }),
      await ask({ authorization: 'Bearer acme' }),
    ]
    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 429, 200, 401])
    expect(statuses.at(-1)!.headers.get('www-authenticate')).toBe('Bearer realm="gateway", error="invalid_token"')
    expect(app.received).toHaveLength(3)
  })

  it('is identified by the configuration that is in use', async () => {
    const { ask, app, gateway, config, identifier } = await scene({})
    await ask({ 'x-api-key': 'k1' })
    expect(app.received[0]!.headers).toMatchObject({ 'x-api-key': 'k1' })
    const consumers = [{ name: 'acme', keys: [hashOf('k1')] }]
    await gateway.use(config, new CredentialIdentifier({ consumers }, PARTS, identifier))
    await ask({ 'x-api-key': 'k1' })
    expect(app.received[1]!.headers).toMatchObject({ 'x-user-id': 'acme' })
    expect(app.received[1]!.headers).not.toHaveProperty('x-api-key')
    await gateway.use(config)
    expect((await ask({ 'x-api-key': 'wrong' })).status).toBe(401)
  })
})
