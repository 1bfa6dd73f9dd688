import type { Limit } from '../rule/limit.ts'
import type { Algorithm } from './algorithm.ts'

/** The algorithms that this program uses, by the names in compiled limits. */
export type AlgorithmsByName = { readonly [A in Limit['algorithm']]?: Algorithm<Extract<Limit, { algorithm: A }>> }

/** Has every name from the start: an object that keeps its shape is read fastest. */
const REGISTERED: Record<Limit['algorithm'], Algorithm | undefined> = {
  'token-bucket': undefined,
  'token-bucket-rollover': undefined,
  'leaky-bucket-meter': undefined,
  'leaky-bucket-queue': undefined,
  'fixed-window': undefined,
  'sliding-window-counter': undefined,
  'sliding-window-log': undefined,
  'sliding-window-segments': undefined,
  gcra: undefined,
  hybrid: undefined,
  concurrency: undefined,
}

/**
 * Makes algorithms known to {@link algorithmOf}. A rule is compiled only after its algorithms were registered, so every
 * limit has its own. Nothing here names them all: a bundle holds those whose rules the program makes.
 */
export function registerAlgorithms(algorithms: AlgorithmsByName): void {
  for (const name of Object.keys(algorithms) as Limit['algorithm'][]) {
    REGISTERED[name] ??= algorithms[name] as unknown as Algorithm
  }
}

/** The algorithm that decides for `limit`. */
export function algorithmOf(limit: Limit): Algorithm {
  return REGISTERED[limit.algorithm] as Algorithm
}
