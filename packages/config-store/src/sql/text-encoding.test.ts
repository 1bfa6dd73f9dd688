import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeText, encodeKey, encodeText } from './text-encoding.ts'

const texts = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('\\', 'u', '0', '\0', '\ud83d', '\ude00', 'd83d') }),
)

describe('encodeText', () => {
  it('leaves ordinary strings as they are', () => {
    expect(encodeText('user:1 {x} émoji 😀 %\n')).toBe('user:1 {x} émoji 😀 %\n')
  })

  it('writes out what databases do not keep', () => {
    expect(encodeText('a\0b\\c\ud83d')).toBe('a\\u0000b\\\\c\\ud83d')
  })

  it('property: comes back as it was, and holds nothing that a database would change', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const stored = encodeText(text)
        expect(decodeText(stored)).toBe(text)
        expect(Buffer.from(stored, 'utf8').toString('utf8')).toBe(stored)
        expect(stored).not.toContain('\0')
      }),
    )
  })
})

describe('encodeKey', () => {
  it('is the text itself, as it is stored, up to 256 characters', () => {
    expect(encodeKey('a'.repeat(256))).toBe('a'.repeat(256))
    expect(encodeKey('\0')).toBe('\\u0000')
  })

  it('keeps the beginning of a long string, and keeps different strings apart', () => {
    const long = '€'.repeat(5000)
    expect(encodeKey(long)).toMatch(/^€{200}\\h[\w-]{43}$/)
    const keys = [long, `${long}1`, `${long}\ud83d`, `${long}\ud83e`, `${long}\ufffd`].map(encodeKey)
    expect(new Set(keys).size).toBe(keys.length)
  })
})
