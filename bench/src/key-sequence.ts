/**
 * Numbers below `range` in an order without pattern, the same in every run (xorshift). Keys must be built from them at the
 * call, as a request would.
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
