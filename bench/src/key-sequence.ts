/**
 * Numbers below `range` in an order without pattern, the same in every run (xorshift). Keys must be built from them at
 * the call, as a request would.
 */
export function keySequence(count: number, range: number): Uint32Array {
  const sequence = new Uint32Array(count)
  let state = 2_463_534_242
  for (let index = 0; index < count; index++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    sequence[index] = (state >>> 0) % range
  }
  return sequence
}

/**
 * Numbers below `range` as traffic spreads over them: the n-th about 1/n as often as the first (Zipf's law). The same
 * in every run.
 */
export function skewedSequence(count: number, range: number): Uint32Array {
  const even = keySequence(count, 0xff_ff_ff_ff)
  return even.map((drawn) => Math.floor((range + 1) ** (drawn / 0xff_ff_ff_ff)) - 1)
}
