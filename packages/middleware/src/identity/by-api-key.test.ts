import { describe, expect, it } from 'vitest'
import type { HttpRequest } from '../http/http-request.ts'
import { type ApiKeyOptions, byApiKey } from './by-api-key.ts'
import type { HeaderLines } from './forwarded-header.ts'

function requestWith(headers: Readonly<Record<string, HeaderLines>>): HttpRequest {
  return { method: 'GET', url: '/', route: undefined, peerAddress: '192.0.2.1', header: (name) => headers[name] }
}

/** A source that records what it verifies, and returns the owner of `secret`. */
function watchedSource(options: Partial<ApiKeyOptions<unknown>> = {}) {
  const presented: string[] = []
  const source = byApiKey({
    verify: (key) => {
      presented.push(key)
      return key === 'secret' ? 'owner-1' : undefined
    },
    ...options,
  })
  return { presented, source }
}

describe('byApiKey', () => {
  it('counts by what verify answered, and shows neither that nor the key', () => {
    const { source } = watchedSource()
    const identity = source({}, requestWith({ authorization: 'Bearer secret' }))
    expect(identity).toEqual({ kind: 'apiKey', value: expect.stringMatching(/^[\da-f]{64}$/) })
  })

  it('gives all keys of one owner one identity, and different owners different ones', () => {
    const source = byApiKey({ verify: (key) => key.split('-')[0] })
    const of = (key: string) => source({}, requestWith({ authorization: `Bearer ${key}` }))
    expect(of('ann-1')).toEqual(of('ann-2'))
    expect(of('ann-1')).not.toEqual(of('bob-1'))
  })

  it('gives the same identity again, also to owners with long names', () => {
    const source = byApiKey({ verify: (key) => key.repeat(10) })
    const of = (key: string) => source({}, requestWith({ authorization: `Bearer ${key}` }))
    for (const key of ['a', 'b', 'x'.repeat(30), `${'x'.repeat(29)}y`]) expect(of(key)).toEqual(of(key))
    const identities = ['a', 'b', 'x'.repeat(30), `${'x'.repeat(29)}y`].map((key) => JSON.stringify(of(key)))
    expect(new Set(identities).size).toBe(4)
  })

  it.each([undefined, null, false, ''] as const)('leaves a key alone for which verify answers %j', (answer) => {
    const source = byApiKey({ verify: () => answer })
    expect(source({}, requestWith({ authorization: 'Bearer secret' }))).toBeUndefined()
  })

  it('waits for verify, and hands on what it rejects with', async () => {
    const later = byApiKey({ verify: (key) => Promise.resolve(key === 'secret' && 'owner-1') })
    await expect(later({}, requestWith({ authorization: 'Bearer secret' }))).resolves.toMatchObject({ kind: 'apiKey' })
    await expect(later({}, requestWith({ authorization: 'Bearer other' }))).resolves.toBeUndefined()
    const failing = byApiKey({ verify: () => Promise.reject(new Error('database away')) })
    await expect(failing({}, requestWith({ authorization: 'Bearer secret' }))).rejects.toThrow('database away')
  })

  it('hands the context to verify', () => {
    const source = byApiKey({ verify: (key, context: { owners: Map<string, string> }) => context.owners.get(key) })
    const owners = new Map([['secret', 'owner-1']])
    expect(source({ owners }, requestWith({ authorization: 'Bearer secret' }))).toMatchObject({ kind: 'apiKey' })
  })

  it.each<[HeaderLines]>([
    [undefined],
    [''],
    ['Bearer'],
    ['Bearer '],
    ['Bearersecret'],
    ['secret'],
    ['Basic secret'],
    ['n1 Bearer secret'],
    ['Bearer secret other'],
    ['Bearer "secret'],
    ['Bearer secret\u0000'],
    ['Bearer sécret'],
    [`Bearer ${'x'.repeat(9000)}`],
    [['Bearer secret', 'Bearer other']],
    [[]],
  ])('does not ask about %j', (authorization) => {
    const { presented, source } = watchedSource()
    expect(source({}, requestWith({ authorization }))).toBeUndefined()
    expect(presented).toEqual([])
  })

  it('reads a scheme or a header of its own', () => {
    const scheme = watchedSource({ scheme: 'ApiKey' })
    scheme.source({}, requestWith({ authorization: 'apikey secret' }))
    scheme.source({}, requestWith({ authorization: 'Bearer secret' }))
    expect(scheme.presented).toEqual(['secret'])

    const header = watchedSource({ header: 'X-Api-Key' })
    header.source({}, requestWith({ 'x-api-key': ' secret\t' }))
    header.source({}, requestWith({ 'x-api-key': '"secret"' }))
    header.source({}, requestWith({ 'x-api-key': ['secret', 'secret'] }))
    header.source({}, requestWith({ 'x-api-key': 'Bearer secret' }))
    header.source({}, requestWith({ authorization: 'Bearer secret' }))
    expect(header.presented).toEqual(['secret', 'secret', 'secret'])
  })

  it.each<[unknown, string]>([
    [{}, 'byApiKey: "verify" is missing; received undefined; expected a function'],
    [{ verify: 'yes' }, '"verify" is missing; received "yes"'],
    [{ verify: () => 'x', header: 'a b' }, '"header" cannot be used; received "a b"'],
    [{ verify: () => 'x', scheme: '' }, '"scheme" cannot be used; received ""'],
    [{ verify: () => 'x', header: 'x-key', scheme: 'Key' }, '"scheme" has no meaning for this header'],
  ])('rejects options: %j', (options, message) => {
    expect(() => byApiKey(options as ApiKeyOptions<unknown>)).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_OPTION', message: expect.stringContaining(message) }),
    )
  })

  it.each<[unknown, string]>([
    [true, 'received true; expected a string that stands for the owner of the key'],
    [true, 'Answer with an id, not with yes or no.'],
    [7, 'received 7'],
    [{ id: 1 }, 'an object with id'],
  ])('rejects %j as an answer of verify', (answer, message) => {
    const source = byApiKey({ verify: () => answer as string })
    expect(() => source({}, requestWith({ authorization: 'Bearer secret' }))).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_KEY', message: expect.stringContaining(message) }),
    )
  })
})
