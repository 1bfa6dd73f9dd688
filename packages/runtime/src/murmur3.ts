/**
 * MurmurHash3 (x86, 32 bits) of the UTF-8 bytes of `text`: a whole number from 0 to 2^32 - 1.
 *
 * The same in every process, on every machine and in every other implementation of the algorithm. Every input bit
 * changes about half of the output bits. Not for secrets: collisions can be made on purpose. An unpaired surrogate is
 * encoded by itself, so that strings which differ only there still hash differently.
 */
export function murmur3(text: string, seed = 0): number {
  const bytes = isAscii(text) ? text : utf8Bytes(text)
  const length = bytes.length
  const tail = length - (length % 4)
  let state = seed | 0
  for (let i = 0; i < tail; i += 4) {
    state ^= scramble(
      bytes.charCodeAt(i) |
        (bytes.charCodeAt(i + 1) << 8) |
        (bytes.charCodeAt(i + 2) << 16) |
        (bytes.charCodeAt(i + 3) << 24),
    )
    state = (state << 13) | (state >>> 19)
    state = (Math.imul(state, 5) + 0xe6_54_6b_64) | 0
  }
  let rest = 0
  for (let i = length - 1; i >= tail; i--) rest = (rest << 8) | bytes.charCodeAt(i)
  state ^= scramble(rest)
  return mix32(state ^ length)
}

/**
 * Spreads a 32-bit number over all 32 bits (the finishing step of MurmurHash3). One to one: different numbers give
 * different results, from 0 to 2^32 - 1.
 */
export function mix32(value: number): number {
  let mixed = value ^ (value >>> 16)
  mixed = Math.imul(mixed, 0x85_eb_ca_6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2_b2_ae_35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

function scramble(block: number): number {
  const product = Math.imul(block, 0xcc_9e_2d_51)
  return Math.imul((product << 15) | (product >>> 17), 0x1b_87_35_93)
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}

/** One character from 0 to 255 for each byte of the UTF-8 form, so that one loop hashes both kinds of text. */
function utf8Bytes(text: string): string {
  let bytes = ''
  for (const character of text) {
    const code = character.codePointAt(0) as number
    if (code < 0x80) bytes += character
    else if (code < 0x8_00) bytes += String.fromCharCode(0xc0 | (code >> 6), continuation(code))
    else if (code < 0x1_00_00)
      bytes += String.fromCharCode(0xe0 | (code >> 12), continuation(code >> 6), continuation(code))
    else {
      bytes += String.fromCharCode(
        0xf0 | (code >> 18),
        continuation(code >> 12),
        continuation(code >> 6),
        continuation(code),
      )
    }
  }
  return bytes
}

function continuation(bits: number): number {
  return 0x80 | (bits & 0x3f)
}
