import type { Limit } from '../rule/limit.ts'

/**
 * What a store keeps for one key under one limit: a list of whole numbers, empty if nothing is known. It holds what was
 * used and when, never the limit itself, so a changed limit applies to earlier usage at once.
 */
export type State = readonly number[]

/** The input of a decision. */
export interface Ask {
  /** Microseconds since 1970, whole. */
  now: number
  /** Units requested, whole, 0 or more. */
  cost: number
  /** The slot that a concurrency limit would assign: whole, above 0, unique among live holders. Others ignore it. */
  holder: number
  /** Whether a burst on top of a window may be used. Limits without one ignore it. */
  entitled: boolean
}

/** The result of a decision. `never`: the cost exceeds what the limit can ever hold, so waiting does not help. */
export type Ruling = 'allowed' | 'limit' | 'never'

/** Never, as an instant. */
export const NEVER: number = Number.POSITIVE_INFINITY

/**
 * The result of one decision. Reusable: each decision writes every field. `next` holds the state to store in its first
 * `nextLength` places; it is meaningful only if `ruling` is `allowed`.
 */
export interface Verdict {
  ruling: Ruling
  /** Whole units that remain: after the charge if allowed, before it if not. */
  remaining: number
  /** When the full limit is available again if nothing more is charged (windows: when the current window ends). */
  resetAt: number
  /** The first instant at which the same call would be allowed if nothing else is charged; `now` if allowed. */
  retryAt: number
  /** How long an allowed call must wait before it runs (queue), in microseconds; 0 elsewhere. */
  delayMicros: number
  /** From this instant on the state equals an empty one, so a store may forget it. */
  freshAt: number
  /** What the algorithm needs to refund this charge: which part of a combined limit was charged. */
  mark: number
  next: number[]
  nextLength: number
}

/** The `at` of a correction without a particular charge: the most recently used units are returned. */
export const LATEST = -1

/** A charge that was made earlier. */
export interface Charge {
  /** The `now` of the algorithm when it made the charge, or {@link LATEST}. */
  readonly at: number
  /** Units charged. */
  readonly cost: number
  /** The `mark` of its verdict. */
  readonly mark: number
  /** The `holder` of its call. */
  readonly holder: number
}

/**
 * An algorithm. Pure: results depend only on the arguments, and nothing but `verdict` is written. Stores make it
 * atomic.
 */
export interface Algorithm<L extends Limit = Limit> {
  readonly name: L['algorithm']
  /** Maximum number of values in a state of this limit. */
  stateSize(limit: L): number
  /** Whether every state except the empty one has exactly `stateSize` values. */
  fixedSize(limit: L): boolean
  /** Decides `ask` in `verdict`. A denial changes nothing; an allowance writes the new state to `verdict.next`. */
  decide(state: State, limit: L, ask: Readonly<Ask>, verdict: Verdict): void
  /**
   * Corrects an earlier charge at `now` by `units`: below 0 returns units, above 0 charges more, unconditionally.
   * Returning stops at zero use and never reaches units of a later window or units that have already leaked; charging
   * more may exceed the limit (the usage has happened), and affects later calls. With {@link LATEST}, returns units of
   * any charge, most recent first; a queue returns nothing then, and slots belong to their holders. Writes
   * `verdict.next`, `nextLength` and `freshAt`. Returns the units corrected, with their sign; undefined if the charge
   * is no longer held (a lease expired).
   */
  correct(state: State, limit: L, correction: Correction, verdict: Verdict): number | undefined
}

/** A correction of an earlier charge. */
export interface Correction {
  readonly now: number
  readonly units: number
  readonly charge: Charge
}

/** The algorithms of this program, by their names in compiled limits. */
export type AlgorithmsByName = { readonly [A in Limit['algorithm']]?: Algorithm<Extract<Limit, { algorithm: A }>> }

/** Has every name from the start: objects with a fixed shape are fastest to read. */
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
 * Registers algorithms for {@link algorithmOf}. A rule is compiled only after its algorithms were registered, so every
 * limit has one. Nothing here names them all: a bundle contains only those of the rules that the program creates.
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

/** An empty verdict. */
export function createVerdict(): Verdict {
  return {
    ruling: 'limit',
    remaining: 0,
    resetAt: 0.5,
    retryAt: 0.5,
    delayMicros: 0.5,
    freshAt: 0.5,
    mark: 0,
    next: [0.5, 0.5, 0.5, 0.5],
    nextLength: 0,
  }
}

/** The result and the state after it, as values: the form in which an algorithm is specified and tested. */
export function step<L extends Limit>(
  algorithm: Algorithm<L>,
  state: State,
  limit: L,
  ask: Partial<Ask> & Pick<Ask, 'now' | 'cost'>,
): { readonly verdict: Verdict; readonly state: State } {
  const verdict = createVerdict()
  algorithm.decide(state, limit, { holder: 1, entitled: true, ...ask }, verdict)
  return { verdict, state: verdict.ruling === 'allowed' ? verdict.next.slice(0, verdict.nextLength) : state }
}
