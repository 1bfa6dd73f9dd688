/**
 * Words of 64 bits in shared memory, changed by compare-and-swap: a version in the low half that every change raises,
 * and a payload in the high half. With the version a word never looks the same again, so a swap that succeeds proves
 * that nothing happened since the word was read (32 bits of version: that would take 4 billion changes between the
 * two).
 */
export class SharedWords {
  readonly #halves: Int32Array
  readonly #words: BigInt64Array
  // Expected and new value are put together here: two halves in, one 64-bit number out.
  readonly #scratchHalves: Int32Array
  readonly #scratchWords: BigInt64Array

  constructor(buffer: SharedArrayBuffer) {
    this.#halves = new Int32Array(buffer)
    this.#words = new BigInt64Array(buffer, 0, buffer.byteLength >> 3)
    const scratch = new ArrayBuffer(16)
    this.#scratchHalves = new Int32Array(scratch)
    this.#scratchWords = new BigInt64Array(scratch)
  }

  /** The version of the word at `half` (an even index of 32-bit halves). */
  version(half: number): number {
    return Atomics.load(this.#halves, half)
  }

  /** The payload of the word at `half`. Read on its own: check with {@link isStill} that it belongs to a version. */
  payload(half: number): number {
    return Atomics.load(this.#halves, half + 1)
  }

  /**
   * True when the word has had this version and payload since the version was read. The payload is looked at first:
   * when the version is the same before and after, the payload in between was that of it.
   */
  isStill(half: number, version: number, payload: number): boolean {
    return Atomics.load(this.#halves, half + 1) === payload && Atomics.load(this.#halves, half) === version
  }

  /** Changes the word to the next version and this payload, if it still has the version and payload of `from`. */
  advance(half: number, from: WordValue, payload: number): boolean {
    return this.#swap(half, from, (from.version + 1) | 0, payload)
  }

  /** Changes only the payload, if the word still has the version and payload of `from`. */
  replace(half: number, from: WordValue, payload: number): boolean {
    return this.#swap(half, from, from.version, payload)
  }

  #swap(half: number, from: WordValue, version: number, payload: number): boolean {
    this.#scratchHalves[0] = from.version
    this.#scratchHalves[1] = from.payload
    this.#scratchHalves[2] = version
    this.#scratchHalves[3] = payload
    const expected = this.#scratchWords[0]!
    return Atomics.compareExchange(this.#words, half >> 1, expected, this.#scratchWords[1]!) === expected
  }
}

/** Both halves of a word. */
export interface WordValue {
  readonly version: number
  readonly payload: number
}
