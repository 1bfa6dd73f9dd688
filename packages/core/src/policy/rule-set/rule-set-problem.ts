/** One thing that is wrong with a rule set. */
export interface RuleSetProblem {
  /** Where, as a JSON pointer such as `/rules/3/window`; empty for the whole. */
  readonly path: string
  /** What stands there, in short. */
  readonly received: string
  readonly expected: string
  /** Line in the file it was read from, counted from 1, when it was read from one. */
  readonly line?: number
}
