/** What to answer when the store cannot be asked: allow, deny, or decide here with this node's share of what remains. */
export type FailureMode = 'open' | 'closed' | 'local'

/** Says that a decision was made without the store, and why. */
export interface Failure {
  /** How it was decided instead. */
  readonly mode: FailureMode
  /**
   * `deadline`: no answer in time. `unreachable`: there is no connection, or it broke. `refused`: the store answered with an
   * error. `breaker`: it was not asked, because it failed so often just before.
   */
  readonly cause: 'deadline' | 'unreachable' | 'refused' | 'breaker'
  /** Whether the store may have charged the call all the same: `unknown` when it was asked and no answer came. */
  readonly charged: 'no' | 'unknown'
  /**
   * What the store said last before this, and what to do about it, for people; undefined when it said nothing. Not for callers
   * from outside: it may name servers.
   */
  readonly detail?: string | undefined
}
