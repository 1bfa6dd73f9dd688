import type { EntryChange } from '@sluice/config-store'
import { describe, expect, it } from 'vitest'
import type { KnownApiKey } from './authenticator.ts'
import { ApiKeyCache } from './authenticator.ts'

function keyNamed(name: string, more: Partial<KnownApiKey> = {}): KnownApiKey {
  return {
    id: `slk_${name}`,
    name,
    role: 'viewer',
    tenant: undefined,
    tier: undefined,
    createdAt: 1,
    expiresAt: undefined,
    revokedAt: undefined,
    rotatedFrom: undefined,
    secretHash: '00',
    ...more,
  }
}

function put(...keys: readonly KnownApiKey[]): readonly EntryChange[] {
  return keys.map((entry) => ({ kind: 'api-key', key: entry.id, entry }))
}

describe('ApiKeyCache', () => {
  it('has what came last, and nothing else', () => {
    const cache = new ApiKeyCache()
    cache.apply([
      ...put(keyNamed('a'), keyNamed('b')),
      { kind: 'incident', entry: { active: true } },
      { kind: 'member', key: { dimension: 'user', entity: 'slk_c' }, entry: undefined },
    ])
    cache.apply(put(keyNamed('a', { revokedAt: 7 })))
    cache.apply([{ kind: 'api-key', key: 'slk_b', entry: undefined }])
    expect(cache.find('slk_a')).toEqual(keyNamed('a', { revokedAt: 7 }))
    expect([cache.find('slk_b'), cache.find('slk_c'), cache.size]).toEqual([undefined, undefined, 1])
  })

  it('goes on with what it has until a reload is complete, and then forgets what was not in it', () => {
    const cache = new ApiKeyCache()
    cache.apply(put(keyNamed('old'), keyNamed('kept')))
    cache.beginReload()
    cache.apply(put(keyNamed('kept', { role: 'admin' })))
    expect([cache.find('slk_old')?.role, cache.find('slk_kept')?.role]).toEqual(['viewer', 'admin'])
    cache.endReload()
    expect([cache.find('slk_old'), cache.find('slk_kept')?.role, cache.size]).toEqual([undefined, 'admin', 1])
  })

  it('forgets what the first half of a reload brought when that is restarted', () => {
    const cache = new ApiKeyCache()
    cache.beginReload()
    cache.apply(put(keyNamed('gone')))
    cache.beginReload()
    cache.apply(put(keyNamed('there')))
    cache.endReload()
    expect([cache.find('slk_gone'), cache.find('slk_there')?.name]).toEqual([undefined, 'there'])
  })

  it('knows when it has all keys', () => {
    const cache = new ApiKeyCache()
    cache.beginReload()
    cache.apply(put(keyNamed('a')))
    expect(cache.isLoaded).toBe(false)
    cache.endReload()
    expect(cache.isLoaded).toBe(true)
    cache.beginReload()
    expect(cache.isLoaded).toBe(true)
  })
})
