/** Which part of the rule set a rule stands in. */
export interface RuleOrigin {
  readonly part: 'rules' | 'tier' | 'exemption'
  /** The name of the tier or exemption; empty for `rules`. */
  readonly name: string
}
