import { createHmac } from 'node:crypto'
import { FakeClock, START_MICROS } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JwtConfig } from '../config/gateway-config.ts'
import { testIssuer } from './issuer.test.support.ts'
import { KeySet } from './key-set.ts'
import { TokenVerifier } from './token-verifier.ts'

const NOW = START_MICROS / 1_000_000
const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

async function scene(config: Partial<JwtConfig> = {}, maxTokens?: number) {
  const clock = new FakeClock()
  const issuer = await testIssuer()
  const state = { isDown: false }
  const read = async (): Promise<string> => {
    await Promise.resolve()
    if (state.isDown) throw new Error('down')
    return issuer.keySet()
  }
  const keys = new KeySet({ read, clock, random: () => 0.5 })
  const jwt = { jwks: 'https://issuer.test/keys', ...config }
  const verifier = new TokenVerifier({ config: jwt, keys, clock, ...(maxTokens !== undefined && { maxTokens }) })
  return { clock, issuer, keys, verifier, state }
}

describe('a token', () => {
  it('gives user, tenant and tier by its claims', async () => {
    const claims = { user: 'uid', tenant: 'org.id', tier: 'https://example.com/tier' }
    const { issuer, verifier } = await scene({ claims })
    const token = await issuer.sign({ uid: 42, org: { id: 't1' }, 'https://example.com/tier': 'gold', exp: NOW + 60 })
    expect(await verifier.verify(token)).toEqual({ user: '42', apiKey: undefined, tenant: 't1', tier: 'gold' })
  })

  it.each([{}, { sub: '' }, { sub: { id: 1 } }, { sub: ['a'] }, { sub: true }])(
    'without a user is not accepted: %j',
    async (claims) => {
      const { issuer, verifier } = await scene()
      const token = await issuer.sign({ ...(claims as object), exp: NOW + 60 })
      // Where "sub" is no text, jose does not accept it either.
      expect(await verifier.verify(token)).toMatchObject({ reason: 'invalid' })
    },
  )

  it('is verified once, and known at once from then on', async () => {
    const { issuer, verifier } = await scene()
    const token = await issuer.sign({ sub: 'u1', exp: NOW + 60 })
    const [one, other] = [verifier.verify(token), verifier.verify(token)]
    expect(one).toBeInstanceOf(Promise)
    expect(other).toBe(one)
    await one
    expect(verifier.verify(token)).toMatchObject({ user: 'u1' })
  })

  it('is known by all of it: another signature is another token', async () => {
    const { issuer, verifier } = await scene()
    const token = await issuer.sign({ sub: 'u1', exp: NOW + 60 })
    await verifier.verify(token)
    const [head, body, signature] = token.split('.') as [string, string, string]
    const flipped = `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
    expect(await verifier.verify(`${head}.${body}.${flipped}`)).toMatchObject({ reason: 'invalid' })
    const other = base64url({ sub: 'u2', exp: NOW + 60 })
    expect(await verifier.verify(`${head}.${other}.${signature}`)).toMatchObject({ reason: 'invalid' })
    expect(verifier.size).toBe(1)
  })

  it('is remembered until it expires, and accepted 5 seconds longer', async () => {
    const { clock, issuer, verifier } = await scene()
    const token = await issuer.sign({ sub: 'u1', exp: NOW + 60 })
    await verifier.verify(token)
    clock.advance(59_999)
    expect(verifier.verify(token)).toMatchObject({ user: 'u1' })
    clock.advance(1)
    expect(verifier.verify(token)).toBeInstanceOf(Promise)
    clock.advance(4999)
    expect(await verifier.verify(token)).toMatchObject({ user: 'u1' })
    clock.advance(1)
    expect(verifier.verify(token)).toEqual({ reason: 'expired', detail: 'It has expired.' })
    expect(verifier.size).toBe(0)
  })

  it('is accepted 5 seconds before "nbf"', async () => {
    const { issuer, verifier } = await scene()
    const early = await issuer.sign({ sub: 'u1', nbf: NOW + 6, exp: NOW + 60 })
    expect(await verifier.verify(early)).toMatchObject({ reason: 'invalid', detail: 'It is not valid yet.' })
    const soon = await issuer.sign({ sub: 'u1', nbf: NOW + 5, exp: NOW + 60 })
    expect(await verifier.verify(soon)).toMatchObject({ user: 'u1' })
  })

  it('is of the issuer and for the audience of the configuration', async () => {
    const { issuer, verifier } = await scene({ issuer: 'https://issuer.test', audience: ['api', 'admin'] })
    const claims = { sub: 'u1', exp: NOW + 60, iss: 'https://issuer.test', aud: 'api' }
    expect(await verifier.verify(await issuer.sign(claims))).toMatchObject({ user: 'u1' })
    expect(await verifier.verify(await issuer.sign({ ...claims, aud: ['x', 'admin'] }))).toMatchObject({ user: 'u1' })
    for (const wrong of [{ iss: 'https://other.test' }, { iss: undefined }, { aud: 'web' }, { aud: undefined }]) {
      const { iss, aud, ...rest } = { ...claims, ...wrong }
      const token = await issuer.sign({ ...rest, ...(iss !== undefined && { iss }), ...(aud !== undefined && { aud }) })
      expect(verifier.verify(token)).toMatchObject({ reason: 'invalid' })
    }
  })

  it('without "exp" is not accepted', async () => {
    const { issuer, verifier } = await scene()
    expect(verifier.verify(await issuer.sign({ sub: 'u1' }))).toMatchObject({ detail: 'It has no "exp".' })
  })

  it('without key id is tried with all keys of the set', async () => {
    const { issuer, verifier } = await scene()
    await issuer.addKey('two')
    const token = await issuer.sign({ sub: 'u1', exp: NOW + 60 }, { kid: 'two', omitKid: true })
    expect(await verifier.verify(token)).toMatchObject({ user: 'u1' })
  })

  it('that is not signed, or signed with the public key as a secret, is not accepted', async () => {
    const { issuer, verifier } = await scene()
    const claims = base64url({ sub: 'admin', exp: NOW + 60 })
    for (const alg of ['none', 'None', 'NONE', '']) {
      const token = `${base64url({ alg, kid: 'one' })}.${claims}.`
      expect(await verifier.verify(token)).toMatchObject({ reason: 'invalid' })
    }
    for (const secret of [await issuer.publicPem('one'), issuer.keySet(), '']) {
      const signed = `${base64url({ alg: 'HS256', kid: 'one' })}.${claims}`
      const token = `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
      expect(verifier.verify(token)).toMatchObject({ detail: 'Its algorithm is not allowed.' })
    }
  })

  it.each(['none', 'HS256', 'HS512', 'RS1'])('cannot be configured to be signed with %s', async (algorithm) => {
    await expect(scene({ algorithms: ['ES256', algorithm] })).rejects.toThrow('SLUICE_INVALID_OPTION')
  })

  it('with an allowed algorithm that is not configured is not accepted', async () => {
    const { issuer, verifier } = await scene({ algorithms: ['RS256'] })
    const token = await issuer.sign({ sub: 'u1', exp: NOW + 60 })
    expect(verifier.verify(token)).toMatchObject({ detail: 'Its algorithm is not allowed.' })
  })

  it('ends with its key: once the issuer has withdrawn it, a remembered token is not accepted', async () => {
    const { clock, issuer, keys, verifier } = await scene()
    const token = await issuer.sign({ sub: 'u1', exp: NOW + 86_400 })
    await verifier.verify(token)
    await issuer.addKey('two')
    issuer.removeKey('one')
    clock.advance(10 * 60_000)
    expect(verifier.verify(token)).toMatchObject({ user: 'u1' })
    await keys.refresh()
    expect(await verifier.verify(token)).toMatchObject({ reason: 'invalid' })
  })

  it('of a known key is accepted while the issuer is unavailable; of an unknown one it is not', async () => {
    const { clock, issuer, verifier, state } = await scene()
    await verifier.verify(await issuer.sign({ sub: 'u1', exp: NOW + 60 }))
    state.isDown = true
    clock.advance(3_600_000)
    const later = NOW + 3700
    expect(await verifier.verify(await issuer.sign({ sub: 'u2', exp: later }))).toMatchObject({ user: 'u2' })
    await issuer.addKey('two')
    const unknown = await issuer.sign({ sub: 'u3', exp: later }, { kid: 'two' })
    expect(await verifier.verify(unknown)).toMatchObject({ reason: 'invalid' })
  })

  it('cannot be judged before any key is known', async () => {
    const { issuer, verifier, state } = await scene()
    state.isDown = true
    const token = await issuer.sign({ sub: 'u1', exp: NOW + 60 })
    expect(await verifier.verify(token)).toMatchObject({ reason: 'unavailable', retryAfterMs: 1000 })
  })
})

describe('the memory of tokens', () => {
  it('is bounded; the one that was not used for longest goes first', async () => {
    const { issuer, verifier } = await scene({}, 3)
    const tokens = await Promise.all(['a', 'b', 'c', 'd'].map((sub) => issuer.sign({ sub, exp: NOW + 60 })))
    const [a, b, c, d] = tokens as [string, string, string, string]
    for (const token of [a, b, c]) await verifier.verify(token)
    expect(verifier.verify(a)).not.toBeInstanceOf(Promise)
    await verifier.verify(d)
    expect([a, c, d].map((token) => verifier.verify(token) instanceof Promise)).toEqual([false, false, false])
    expect(verifier.verify(b)).toBeInstanceOf(Promise)
    await verifier.verify(b)
    expect(verifier.size).toBe(3)
  })
})

it('accepts nothing that is made up, and never throws', async () => {
  const { issuer, verifier } = await scene()
  const token = await issuer.sign({ sub: 'u1', exp: NOW + 60 })
  const parts = token.split('.')
  const part = fc.oneof(fc.constantFrom(...parts), fc.base64String(), fc.string(), fc.json().map(base64url))
  await fc.assert(
    fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 5 }), async (made) => {
      const text = made.join('.')
      if (text === token) return
      expect(await verifier.verify(text)).toMatchObject({ reason: 'invalid' })
    }),
    { numRuns: 500 },
  )
})
