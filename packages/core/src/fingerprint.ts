import type { Random } from './random.ts'

// HalfSipHash-1-3 (the 32-bit relative of SipHash, as used for kernel hash tables), over UTF-16 code units, two to a word.
// It is keyed with secret randomness, so nobody can search for two keys that meet; 96 bits of its final state are used.

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

/**
 * Fingerprints of texts, 96 bits. Two different texts have the same one with a chance of 2^-96; nobody without the secret
 * can do better than chance. The result is left in `word0` to `word2` (int32) until the next call: no allocation.
 */
export class Fingerprint {
  word0 = 0
  word1 = 0
  word2 = 0
  readonly #low: number
  readonly #high: number

  constructor(secret: FingerprintSecret) {
    this.#low = secret.low | 0
    this.#high = secret.high | 0
  }

  /** Fingerprints `text` in the name space `space0`, `space1` (int32 each), see {@link nameSpace}. */
  of(space0: number, space1: number, text: string): void {
    let v0 = this.#low
    let v1 = this.#high
    let v2 = INITIAL_2 ^ this.#low
    let v3 = INITIAL_3 ^ this.#high
    const length = text.length
    // Words: the name space (2), the code units (two a word), then the length with a last odd unit.
    const words = 2 + (length >> 1) + 1
    for (let index = 0; index < words + FINAL_ROUNDS; index++) {
      let word = 0
      if (index >= words) {
        if (index === words) v2 ^= 0xff
      } else if (index >= 2) {
        const unit = (index - 2) << 1
        if (index < words - 1) word = text.charCodeAt(unit) | (text.charCodeAt(unit + 1) << 16)
        else word = (length << 16) | ((length & 1) === 1 ? text.charCodeAt(length - 1) : 0)
      } else {
        word = index === 0 ? space0 : space1
      }
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
    }
    this.word0 = v0
    this.word1 = v1
    this.word2 = v2
  }
}

/** A fixed 64-bit name space for a name chosen by the operator, such as a rule's; the same in every process. */
export function nameSpace(name: string): { readonly space0: number; readonly space1: number } {
  const fingerprint = new Fingerprint({ low: 0x73_6c_75_69, high: 0x63_65_00_01 })
  fingerprint.of(name.length, 0, name)
  return { space0: fingerprint.word0, space1: fingerprint.word1 }
}
