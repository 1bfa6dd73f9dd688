import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HttpRequest } from '../http/http-request.ts'
import { byIp, byUser, type Identity, identityKey, identityOf } from './identity.ts'

const request: HttpRequest = {
  method: 'GET',
  url: '/',
  route: undefined,
  peerAddress: '192.0.2.1',
  header: () => undefined,
}

describe('an identity', () => {
  it.each<[unknown, Identity]>([
    ['abc', { kind: 'key', value: 'abc' }],
    [
      { kind: 'tenant', value: 'acme' },
      { kind: 'tenant', value: 'acme' },
    ],
    [undefined, { kind: 'ip', value: '192.0.2.1' }],
    [null, { kind: 'ip', value: '192.0.2.1' }],
    ['', { kind: 'ip', value: '192.0.2.1' }],
    [
      { kind: 'user', value: '' },
      { kind: 'ip', value: '192.0.2.1' },
    ],
    [
      { kind: 'ip', value: '::ffff:1.2.3.4' },
      { kind: 'ip', value: '1.2.3.4' },
    ],
    [
      { kind: 'ip', value: '2001:DB8::0001' },
      { kind: 'ip', value: '2001:db8::1' },
    ],
    [
      { kind: 'ip', value: 'unknown' },
      { kind: 'ip', value: '192.0.2.1' },
    ],
    [
      { kind: 'ip', value: 'fe80::1%eth0' },
      { kind: 'ip', value: '192.0.2.1' },
    ],
  ])('from %j is %j', (answer, identity) => {
    expect(identityOf(answer, '192.0.2.1')).toEqual(identity)
  })

  it('is one for all requests of which nothing is known', () => {
    expect(identityOf(undefined, undefined)).toEqual({ kind: 'unknown', value: '' })
    expect(identityOf({ kind: 'ip', value: 'x' }, undefined)).toEqual({ kind: 'unknown', value: '' })
  })

  it.each<[unknown, string]>([
    [7, 'received 7; expected a string, { kind, value } of two strings, or undefined'],
    [7, 'String(id)'],
    [true, 'received true'],
    [{ kind: 'user' }, 'an object with kind'],
    [{ kind: '', value: 'x' }, 'kind, value'],
    [{ kind: 'user', value: 7 }, 'kind, value'],
    [['user', 'x'], 'an array of 2'],
  ])('cannot be made from %j', (answer, message) => {
    expect(() => identityOf(answer, '192.0.2.1')).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_KEY', message: expect.stringContaining(message) }),
    )
  })
})

describe('the key of an identity', () => {
  it('is different for a user who calls himself by an address', () => {
    const address = identityKey(identityOf(undefined, '127.0.0.1'))
    expect(identityKey({ kind: 'user', value: '127.0.0.1' })).not.toBe(address)
    expect(identityKey(identityOf('127.0.0.1', undefined))).not.toBe(address)
  })

  it('is different for different identities, and of bounded length (property)', () => {
    const text = fc.oneof(
      fc.string({ unit: fc.constantFrom('2', ':', 'i', 'p', '#', '\0', '{', '}') }),
      fc.string({ unit: fc.constantFrom('x', '\ud800', '\udc00', '\0', 'é'), minLength: 500, maxLength: 530 }),
    )
    const identity = fc.record({ kind: fc.string({ maxLength: 20 }), value: text })
    fc.assert(
      fc.property(identity, identity, (one, other) => {
        const isSame = one.kind === other.kind && one.value === other.value
        expect(identityKey(one) === identityKey(other)).toBe(isSame)
        expect(identityKey(one).length).toBeLessThan(600)
      }),
      { numRuns: 1000 },
    )
  })

  it('of a long value does not meet that of its hash, nor a value that looks like it', () => {
    const long = identityKey({ kind: 'user', value: 'x'.repeat(513) })
    expect(long).not.toContain('xxx')
    const hash = long.slice(-64)
    expect(identityKey({ kind: 'user', value: hash })).not.toBe(long)
    expect(identityKey({ kind: 'user', value: `sha25664:${hash}` })).not.toBe(long)
    expect(identityKey({ kind: 'user', value: `${'x'.repeat(512)}y` })).not.toBe(long)
  })
})

describe('byUser and byIp', () => {
  it('answer at once when the id is there', () => {
    const source = byUser((context: { id?: string }) => context.id)
    expect(source({ id: 'u-1' }, request)).toEqual({ kind: 'user', value: 'u-1' })
    expect(source({}, request)).toBeUndefined()
    expect(source({ id: '' }, request)).toBeUndefined()
  })

  it('answer later when the id comes later', async () => {
    const source = byIp((context: string) => Promise.resolve(context))
    await expect(source('1.2.3.4', request)).resolves.toEqual({ kind: 'ip', value: '1.2.3.4' })
    await expect(source('', request)).resolves.toBeUndefined()
  })

  it('say what to do about an id that is a number', () => {
    const source = byUser((context: unknown) => context as string)
    expect(() => source(7, request)).toThrow(/SLUICE_INVALID_KEY.*String\(id\)/)
  })
})
