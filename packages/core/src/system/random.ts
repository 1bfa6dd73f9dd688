/** Where chance comes from: identifiers and hash seeds. */
export interface Random {
  /** A whole number from 0 to 2^32 - 1, all equally likely. */
  nextUint32(): number
}
