import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readRedisUrl } from './redis-url.ts'

const PLAIN = { host: 'localhost', port: 6379, tls: false, username: undefined, password: undefined, database: 0 }

describe('a Redis URL', () => {
  it.each([
    ['redis://localhost', PLAIN],
    ['valkey://localhost/', PLAIN],
    ['rediss://localhost:7000', { ...PLAIN, port: 7000, tls: true }],
    ['valkeys://localhost', { ...PLAIN, tls: true }],
    ['redis://localhost/3', { ...PLAIN, database: 3 }],
    ['redis://:secret@localhost', { ...PLAIN, password: 'secret' }],
    ['redis://ann:s%40%3A%2F@localhost', { ...PLAIN, username: 'ann', password: 's@:/' }],
    ['redis://[::1]:1', { ...PLAIN, host: '::1', port: 1 }],
  ])('%s is read', (text, address) => {
    expect(readRedisUrl(text)).toEqual(address)
  })

  it.each([
    '',
    'localhost:6379',
    'http://localhost',
    'redis://',
    'redis://localhost/x',
    'redis://localhost/-1',
    'redis://a:%@b',
  ])('%j is rejected', (text) => {
    expect(() => readRedisUrl(text)).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' }))
  })

  it('keeps any password, and shows none', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 6, unit: 'grapheme' }), (password) => {
        const secret = encodeURIComponent(password)
        expect(readRedisUrl(`redis://u:${secret}@h`).password).toBe(password)
        for (const wrong of [`http://u:${secret}@h`, `redis://u:${secret}@h/x`, `redis//u:${secret}@h`]) {
          expect(messageOf(() => readRedisUrl(wrong))).not.toContain(secret)
        }
      }),
    )
  })
})

function messageOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return JSON.stringify([(error as Error).message, error])
  }
  throw new Error('nothing was thrown')
}
