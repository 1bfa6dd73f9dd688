import type { Random } from './system/random.ts'

// HalfSipHash-1-3 (the 32-bit relative of SipHash, as used for kernel hash tables), over UTF-16 code units, two to a
// word. It is keyed with secret randomness, so callers cannot choose two keys that collide; 96 bits of its final state
// are used.

const INITIAL_2 = 0x6c_79_67_65
const INITIAL_3 = 0x74_65_64_62
const FINAL_ROUNDS = 3

/** A secret 64-bit key for {@link Fingerprint}. */
export interface FingerprintSecret {
  readonly low: number
  readonly high: number
}

/** A secret drawn from `random`. */
export function drawSecret(random: Random): FingerprintSecret {
  return { low: random.nextUint32() | 0, high: random.nextUint32() | 0 }
}

const NO_SECRET: FingerprintSecret = { low: 0, high: 0 }

/**
 * Fingerprints of strings, 96 bits. Two different strings collide with a probability of 2^-96, and a better rate cannot
 * be forced without the secret. The result stays in `word0` to `word2` (int32) until the next call: no allocation.
 */
export class Fingerprint {
  word0 = 0
  word1 = 0
  word2 = 0
  #low: number
  #high: number
  /** Where the secret comes from, until it is drawn. */
  #random: Random | undefined

  /**
   * Takes a secret, or draws one from a source of randomness when the first text comes. Limiters are often made at
   * module scope, where Cloudflare Workers do not let code draw random values.
   */
  constructor(secret: FingerprintSecret | Random) {
    const { low, high } = 'low' in secret ? secret : NO_SECRET
    this.#low = low | 0
    this.#high = high | 0
    this.#random = 'low' in secret ? undefined : secret
  }

  /** Fingerprints `text` in the name space `space0`, `space1` (int32 each), see {@link nameSpace}. */
  of(space0: number, space1: number, text: string): void {
    if (this.#random !== undefined) this.#draw(this.#random)
    let v0 = this.#low ^ space0
    let v1 = this.#high ^ space1
    let v2 = INITIAL_2 ^ v0
    let v3 = INITIAL_3 ^ v1
    const length = text.length
    const even = length & ~1
    // The round stands here twice, written out: as a function it would have to hand back four values.
    for (let index = 0; index < even; index += 2) {
      const word = text.charCodeAt(index) | (text.charCodeAt(index + 1) << 16)
      v3 ^= word
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16) | 0
      v0 ^= word
    }
    // The last word: the length, and a unit left over. Then the rounds that finish.
    let word = (length << 16) | (even < length ? text.charCodeAt(even) : 0)
    for (let round = 0; round <= FINAL_ROUNDS; round++) {
      v3 ^= word
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      v0 ^= word
      if (round === 0) v2 ^= 0xff
      word = 0
    }
    this.word0 = v0
    this.word1 = v1
    this.word2 = v2
  }

  #draw(random: Random): void {
    const { low, high } = drawSecret(random)
    this.#low = low
    this.#high = high
    this.#random = undefined
  }
}

/** A fixed 64-bit name space for a name chosen by the operator, such as a rule's; the same in every process. */
export function nameSpace(name: string): { readonly space0: number; readonly space1: number } {
  const fingerprint = new Fingerprint({ low: 0x73_6c_75_69, high: 0x63_65_00_01 })
  fingerprint.of(name.length, 0, name)
  return { space0: fingerprint.word0, space1: fingerprint.word1 }
}
