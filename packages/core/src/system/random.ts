/** Where chance comes from: identifiers and hash seeds. */
export interface Random {
  /** A whole number from 0 to 2^32 - 1, all equally likely. */
  nextUint32(): number
}

declare const crypto: { getRandomValues(array: Uint32Array): Uint32Array }

const POOL_SIZE = 256

/** Cryptographic randomness, drawn in blocks because one draw is slow. */
function createSystemRandom(): Random {
  const pool = new Uint32Array(POOL_SIZE)
  let next = POOL_SIZE
  return {
    nextUint32() {
      if (next === POOL_SIZE) {
        crypto.getRandomValues(pool)
        next = 0
      }
      return pool[next++]!
    },
  }
}

/** The process's source of chance, used wherever no other is given. */
export const systemRandom: Random = createSystemRandom()
