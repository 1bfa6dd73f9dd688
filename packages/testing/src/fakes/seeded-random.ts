import type { Random } from '@sluice/core'

/** The golden ratio in 32 bits: the step of the counter. */
const STEP = 0x9e_37_79_b9

/**
 * Chance that can be repeated: the same seed (any 32-bit number) gives the same draws. SplitMix32, whose draws are
 * evenly spread and pass for random; not for secrets.
 */
export function seededRandom(seed: number): Random {
  let counter = seed | 0
  return {
    nextUint32() {
      counter = (counter + STEP) | 0
      let mixed = counter ^ (counter >>> 16)
      mixed = Math.imul(mixed, 0x21_f0_aa_ad)
      mixed ^= mixed >>> 15
      mixed = Math.imul(mixed, 0x73_5a_2d_97)
      return (mixed ^ (mixed >>> 15)) >>> 0
    },
  }
}
