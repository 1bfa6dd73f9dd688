import { HOSTILE_KEYS, keys } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkKey, joinKey, LONGEST_KEY } from './key.ts'

describe('joinKey', () => {
  it('puts the length of every part before it', () => {
    expect(joinKey(['user', '42'])).toBe('4:user2:42')
    expect(joinKey([''])).toBe('0:')
    expect(joinKey([])).toBe('')
  })

  it('gives different keys for different parts', () => {
    const part = fc.oneof(keys(), fc.constantFrom('', '1:', '0:', '1', ':', '2:1:'))
    const parts = fc.array(part, { maxLength: 4 })
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const isSame = one.length === other.length && one.every((text, index) => text === other[index])
        expect(joinKey(one) === joinKey(other)).toBe(isSame)
      }),
      {
        numRuns: 2000,
        examples: [
          [['a', 'b'], ['ab']],
          [['1:a'], ['a']],
          [['a', ''], ['a']],
          [['1:a1:b'], ['a', 'b']],
        ],
      },
    )
  })

  it('can be taken apart again', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(keys(), fc.constant('')), { maxLength: 5 }), (parts) => {
        expect(split(joinKey(parts))).toEqual(parts)
      }),
    )
  })
})

function split(key: string): string[] {
  const parts: string[] = []
  for (let at = 0; at < key.length; ) {
    const colon = key.indexOf(':', at)
    const end = colon + 1 + Number(key.slice(at, colon))
    parts.push(key.slice(colon + 1, end))
    at = end
  }
  return parts
}

describe('checkKey', () => {
  it('takes any string of 1 to 4096 code units', () => {
    for (const key of HOSTILE_KEYS) expect(() => checkKey(key)).not.toThrow()
    expect(() => checkKey('k'.repeat(LONGEST_KEY))).not.toThrow()
  })

  it.each([
    ['an empty string', ''],
    ['a megabyte', 'k'.repeat(1_000_000)],
    ['one code unit too many', 'k'.repeat(LONGEST_KEY + 1)],
    ['a number', 42],
    ['undefined', undefined],
    ['null', null],
    ['an object', { toString: () => 'key' }],
    ['a String object', Object('key')],
  ])('rejects %s, and does not show it', (_what, key) => {
    let error: unknown
    try {
      checkKey(key)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ code: 'SLUICE_INVALID_KEY', expected: 'a string of 1 to 4096 characters' })
    expect(String(error).length).toBeLessThan(300)
  })
})
