import type { Limit } from '../rule/limit.ts'

/** How long a block lasts, in microseconds from now (0 lifts it); and what is forgotten in the same step. */
export type BlockTerm = number | ForgettingBlock

/** A block that starts counters afresh. */
export interface ForgettingBlock {
  readonly micros: number
  /** Limits under which the counters of the key are forgotten. Not when a block is lifted. */
  readonly forgotten: readonly Limit[]
}

/** Both parts of a term. */
export function blockTermOf(term: BlockTerm): ForgettingBlock {
  if (typeof term === 'number') return { micros: term, forgotten: [] }
  return term.micros > 0 ? term : { micros: term.micros, forgotten: [] }
}
