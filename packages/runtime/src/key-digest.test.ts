import { createHash, createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { keyDigest } from './key-digest.ts'

describe('keyDigest', () => {
  it('is the beginning of the SHA-256 of the key', () => {
    for (const text of ['', 'user-123', 'Zoë']) {
      expect(keyDigest(text)).toBe(createHash('sha256').update(text).digest('hex').slice(0, 16))
    }
  })

  it('is another for each secret', () => {
    expect(keyDigest('10.0.0.1', 'a')).toBe(createHmac('sha256', 'a').update('10.0.0.1').digest('hex').slice(0, 16))
    const digests = [undefined, '', 'a', 'b'].map((secret) => keyDigest('10.0.0.1', secret))
    expect(new Set(digests).size).toBe(4)
  })
})
