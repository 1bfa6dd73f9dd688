/** The part of a decision that says whether it is the caller's turn. */
export interface Turn {
  readonly allowed: boolean
  /** Milliseconds until it would be, when it is not; Infinity when waiting does not help. */
  readonly retryAfterMs: number
}

/** How to wait for a turn. */
export interface TurnOptions {
  /** Units that the call takes. */
  readonly cost: number
  /** Ends the waiting, which rejects with its reason. */
  readonly signal?: AbortSignal
  /** Most milliseconds to wait, whole and above 0; as long as it takes when left out. */
  readonly maxWait?: number
}

/** Lets callers wait until it is their turn: every limiter of `sluice` is one, and so is what `serviceTurns` makes. */
export interface TurnLimiter {
  /** Whether a turn is a slot, to be given back. `limitedFetch` refuses these, because `acquire` is not woken by a release. */
  readonly holdsSlots?: boolean | undefined
  /** Resolves when it is the caller's turn, or with a refusal when that would take too long. */
  acquire(key: string, options: TurnOptions): Promise<Turn>
}
