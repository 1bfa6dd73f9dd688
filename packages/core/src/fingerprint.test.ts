import { HOSTILE_KEYS, keys, seededRandom } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { drawSecret, Fingerprint, nameSpace } from './fingerprint.ts'

const secret = drawSecret(seededRandom(1))

function wordsOf(text: string, { space = [0, 0], low = secret.low, high = secret.high } = {}): number[] {
  const fingerprint = new Fingerprint({ low, high })
  fingerprint.of(space[0]!, space[1]!, text)
  return [fingerprint.word0, fingerprint.word1, fingerprint.word2]
}

describe('Fingerprint', () => {
  it('is the same for the same secret, space and text, whatever was asked before', () => {
    fc.assert(
      fc.property(keys(), keys(), (before, text) => {
        const used = new Fingerprint(secret)
        used.of(1, 2, before)
        used.of(0, 0, text)
        expect([used.word0, used.word1, used.word2]).toEqual(wordsOf(text))
      }),
    )
  })

  it('gives three 32-bit words', () => {
    fc.assert(
      fc.property(keys(), (text) => {
        for (const word of wordsOf(text)) expect(word).toBe(word | 0)
      }),
    )
  })

  it('differs for different strings', () => {
    const differ = (one: string, other: string): void => {
      if (one !== other) expect(wordsOf(one)).not.toEqual(wordsOf(other))
    }
    fc.assert(fc.property(keys(), keys(), differ), { numRuns: 1000 })
    for (const one of HOSTILE_KEYS) for (const other of HOSTILE_KEYS) differ(one, other)
    // The end of a string: odd and even lengths, and what could be taken for padding.
    const ends = ['', '\0', '\0\0', '\0\0\0', 'a', 'a\0', 'a\0\0', 'ab', 'ab\0', 'abc', 'abc\0', 'ba', 'b\0a']
    for (const one of ends) for (const other of ends) differ(one, other)
  })

  it('differs between name spaces and between secrets', () => {
    fc.assert(
      fc.property(keys(), fc.integer(), (text, word) => {
        const words = wordsOf(text)
        if (word !== 0) expect(wordsOf(text, { space: [word, 0] })).not.toEqual(words)
        if (word !== 0) expect(wordsOf(text, { space: [0, word] })).not.toEqual(words)
        if (word !== 0) expect(wordsOf(text, { space: [0, word] })).not.toEqual(wordsOf(text, { space: [word, 0] }))
        expect(wordsOf(text, { low: secret.low ^ 1 })).not.toEqual(words)
        expect(wordsOf(text, { high: secret.high ^ 1 })).not.toEqual(words)
      }),
    )
  })

  it.each([
    ['numbers in order', (index: number) => `user-${index}`],
    [
      'long keys with one difference',
      (index: number) => `${'x'.repeat(60)}${String.fromCharCode(index)}${'y'.repeat(60)}`,
    ],
  ])('spreads %s evenly over slots and shards, without a repeat', (_what, key) => {
    const [count, slots] = [60_000, 64]
    const seen = new Set<string>()
    const bySlot = new Uint32Array(slots)
    const byShard = new Uint32Array(slots)
    for (let index = 0; index < count; index++) {
      const [word0, word1, word2] = wordsOf(key(index))
      seen.add(`${word0} ${word1} ${word2! & 0xff_ff_ff}`)
      const [slot, shard] = [word0! & (slots - 1), word1! >>> 26]
      bySlot[slot] = bySlot[slot]! + 1
      byShard[shard] = byShard[shard]! + 1
    }
    expect(seen.size).toBe(count)
    // Chi-squared with 63 degrees of freedom: above 130 once in a million.
    for (const counts of [bySlot, byShard]) {
      const mean = count / slots
      const spread = counts.reduce((sum, value) => sum + (value - mean) ** 2 / mean, 0)
      expect(spread).toBeLessThan(130)
    }
  })

  it('changes about half of its bits with any bit of the text', () => {
    let flipped = 0
    let total = 0
    for (let index = 0; index < 200; index++) {
      const text = `tenant:${index * 7919}`
      for (let bit = 0; bit < 16; bit++) {
        const at = index % text.length
        const other = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << bit)) + text.slice(at + 1)
        const [one, two] = [wordsOf(text), wordsOf(other)]
        for (const [word, value] of one.entries()) flipped += countBits(value ^ two[word]!)
        total += 96
      }
    }
    expect(flipped / total).toBeGreaterThan(0.49)
    expect(flipped / total).toBeLessThan(0.51)
  })
})

function countBits(word: number): number {
  let bits = 0
  for (let rest = word >>> 0; rest > 0; rest >>>= 1) bits += rest & 1
  return bits
}

describe('nameSpace', () => {
  it('is the same in every process, for it names counters that processes share', () => {
    expect(nameSpace('default')).toEqual(nameSpace('default'))
    expect(nameSpace('default')).toMatchInlineSnapshot(`
      {
        "space0": 1517855842,
        "space1": -84180210,
      }
    `)
  })

  it('differs between names', () => {
    const spaces = new Set(
      ['a', 'b', 'ab', 'ba', 'a#1000', 'a#60000', 'A'].map((name) => JSON.stringify(nameSpace(name))),
    )
    expect(spaces.size).toBe(7)
  })
})

describe('drawSecret', () => {
  it('takes two words of chance', () => {
    const random = seededRandom(5)
    const [low, high] = [random.nextUint32() | 0, random.nextUint32() | 0]
    expect(drawSecret(seededRandom(5))).toEqual({ low, high })
  })
})
