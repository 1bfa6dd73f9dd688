import type { Limit } from '../rule/limit.ts'

/**
 * What a store remembers for one key under one limit: a list of whole numbers, empty when nothing is known. It holds
 * what was used and when, never the limit itself, so that a changed limit applies to what has been used, at once.
 */
export type State = readonly number[]

/** One question to an algorithm. */
export interface Ask {
  /** Microseconds since 1970, whole. */
  now: number
  /** Units wanted, whole, 0 or more. */
  cost: number
  /** Names the slot a concurrency limit would hand out: whole, above 0, unique among live holders. Others ignore it. */
  holder: number
  /** Whether a burst on top of a window may be used. Limits without one ignore it. */
  entitled: boolean
}

/** Why an answer is what it is. `never`: the cost is more than the limit can ever hold, so waiting does not help. */
export type Ruling = 'allowed' | 'limit' | 'never'

/** No instant: the answer to "when?" is "never". */
export const NEVER: number = Number.POSITIVE_INFINITY

/**
 * The result of one decision. Callers may reuse one: each decision writes every field. `next` holds the state
 * to store in its first `nextLength` places; it is meaningful only when `ruling` is `allowed`.
 */
export interface Verdict {
  ruling: Ruling
  /** Whole units that could still be taken now: after the charge when allowed, before it when not. */
  remaining: number
  /** When the full limit is available again if nothing more is taken (windows: when the current window ends). */
  resetAt: number
  /** The first instant at which this very question would be allowed if nothing else happens; `now` when allowed. */
  retryAt: number
  /** How long an allowed call must wait for its turn (queue), in microseconds; 0 elsewhere. */
  delayMicros: number
  /** From this instant on the state says no more than an empty one, so a store may forget it. */
  freshAt: number
  /** What the algorithm must be told to take this charge back: which part of a combined limit paid it. */
  mark: number
  next: number[]
  nextLength: number
}

/** The `at` of a correction that belongs to no charge in particular: units are given back of what was used last. */
export const LATEST = -1

/** A charge that was made earlier. */
export interface Charge {
  /** The `now` that the algorithm used when it made the charge, or {@link LATEST}. */
  readonly at: number
  /** Units charged. */
  readonly cost: number
  /** The `mark` of its verdict. */
  readonly mark: number
  /** The `holder` of its question. */
  readonly holder: number
}

/**
 * A way to limit. Pure: answers depend on the arguments alone and nothing but `verdict` is written. Stores make it
 * atomic.
 */
export interface Algorithm<L extends Limit = Limit> {
  readonly name: L['algorithm']
  /** The largest number of values a state of this limit can have. */
  stateSize(limit: L): number
  /** Whether every state but the empty one has exactly `stateSize` values. */
  fixedSize(limit: L): boolean
  /** Answers `ask` in `verdict`. A denial changes nothing; an allowance puts the new state into `verdict.next`. */
  decide(state: State, limit: L, ask: Readonly<Ask>, verdict: Verdict): void
  /**
   * Corrects an earlier charge at `now` by `units`: below 0 gives back, above 0 charges more, without asking. Giving
   * back stops at zero use and never reaches units that belong to a later window or have already flowed back; charging
   * more may exceed the limit (it did happen), which later questions then feel. With {@link LATEST} units are given
   * back of whatever is in use, the newest first; a queue gives nothing back then, and slots belong to their holders.
   * Writes `verdict.next`, `nextLength` and `freshAt`. Returns the units really corrected, with their sign; undefined
   * when what was charged is no longer held (a lease ran out).
   */
  correct(state: State, limit: L, correction: Correction, verdict: Verdict): number | undefined
}

/** A correction of an earlier charge. */
export interface Correction {
  readonly now: number
  readonly units: number
  readonly charge: Charge
}

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

/** The answer and the state after it, as values: the form in which an algorithm is specified and tested. */
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
