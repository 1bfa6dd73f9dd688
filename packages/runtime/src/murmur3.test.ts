import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mix32, murmur3 } from './murmur3.ts'

describe('murmur3', () => {
  // Values that other implementations of MurmurHash3 x86_32 publish.
  it.each([
    { text: '', seed: 0, hash: 0 },
    { text: '', seed: 1, hash: 0x51_4e_28_b7 },
    { text: '', seed: 0xff_ff_ff_ff, hash: 0x81_f1_6f_39 },
    { text: 'a', seed: 0x97_47_b2_8c, hash: 0x7f_a0_9e_a6 },
    { text: 'aa', seed: 0x97_47_b2_8c, hash: 0x5d_21_17_26 },
    { text: 'aaa', seed: 0x97_47_b2_8c, hash: 0x28_3e_01_30 },
    { text: 'aaaa', seed: 0x97_47_b2_8c, hash: 0x5a_97_80_8a },
    { text: 'Hello, world!', seed: 0x97_47_b2_8c, hash: 0x24_88_4c_ba },
    { text: 'ππππππππ', seed: 0x97_47_b2_8c, hash: 0xd5_80_63_c1 },
    { text: 'hello', seed: 0, hash: 0x24_8b_fa_47 },
    { text: 'The quick brown fox jumps over the lazy dog', seed: 0, hash: 0x2e_4f_f7_23 },
  ])('of "$text" with seed $seed', ({ text, seed, hash }) => {
    expect(murmur3(text, seed)).toBe(hash)
  })

  it('hashes the UTF-8 bytes of any string (property)', () => {
    const wellFormed = fc.string({ unit: 'binary' })
    fc.assert(
      fc.property(wellFormed, (text) => {
        const bytes = new TextEncoder().encode(text)
        expect(murmur3(text)).toBe(murmur3OfBytes(bytes))
      }),
    )
  })

  it('tells unpaired surrogates apart', () => {
    expect(new Set(['\ud800', '\ud801', '\udc00', '\ufffd'].map((text) => murmur3(text))).size).toBe(4)
  })
})

describe('mix32', () => {
  it('changes about half of the output bits for every input bit', () => {
    for (let bit = 0; bit < 32; bit++) {
      let changed = 0
      for (let value = 0; value < 2000; value++) changed += bitsSet(mix32(value) ^ mix32(value ^ (1 << bit)))
      expect(changed / 2000).toBeGreaterThan(15)
      expect(changed / 2000).toBeLessThan(17)
    }
  })
})

function bitsSet(value: number): number {
  return (value >>> 0).toString(2).replaceAll('0', '').length
}

/** The algorithm once more, in bigint arithmetic and straight from its definition. */
function murmur3OfBytes(bytes: Uint8Array): number {
  const word = (value: bigint): bigint => value & 0xffffffffn
  const turn = (value: bigint, by: bigint): bigint => word((value << by) | (value >> (32n - by)))
  const scramble = (block: bigint): bigint => word(turn(word(block * 0xcc9e2d51n), 15n) * 0x1b873593n)
  let state = 0n
  for (let start = 0; start < bytes.length; start += 4) {
    const part = bytes.subarray(start, start + 4)
    let block = 0n
    for (const [index, byte] of part.entries()) block |= BigInt(byte) << BigInt(8 * index)
    state ^= scramble(block)
    if (part.length === 4) state = word(turn(state, 13n) * 5n + 0xe6546b64n)
  }
  state ^= BigInt(bytes.length)
  state = word((state ^ (state >> 16n)) * 0x85ebca6bn)
  state = word((state ^ (state >> 13n)) * 0xc2b2ae35n)
  return Number(state ^ (state >> 16n))
}
