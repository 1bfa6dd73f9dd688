import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { sha256 } from './sha256.ts'

it('is SHA-256 of the UTF-16 code units, halves of pairs included', () => {
  const agrees = (text: string): void => {
    expect(sha256(text)).toBe(createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('hex'))
  }
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000]) agrees('a'.repeat(length))
  agrees('\uD83D')
  fc.assert(fc.property(fc.string({ unit: 'binary' }), agrees))
})
