/** When, and whether a burst on top of a window may be used. */
export interface Moment {
  /** Microseconds since 1970; a model is called in order of time. */
  readonly now: number
  readonly entitled: boolean
}

/**
 * A limit told as simply as possible, and told differently from the algorithm it is compared with: slow, exact,
 * remembering everything. Charging without asking is allowed.
 */
export interface ReferenceModel {
  /** Whole units that could be taken at this moment, 0 or more. */
  left(moment: Moment): number
  /** Remembers that `cost` units were taken. */
  take(moment: Moment, cost: number): void
}
