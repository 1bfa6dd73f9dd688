import { SluiceError } from '../../errors.ts'

const SHOWN = 5

/** A rule set that cannot be used, with everything that is wrong with it; code `SLUICE_INVALID_RULE_SET`. */
export class RuleSetError extends SluiceError {
  /** All of them, in the order of the rule set; at least one. */
  readonly problems: readonly RuleSetProblem[]

  /** `source`: where the rule set came from, such as the name of a file. */
  constructor(problems: readonly RuleSetProblem[], source = 'the rule set') {
    const shown = problems.slice(0, SHOWN).map(sentence).join('; ')
    const more = problems.length > SHOWN ? `; and ${problems.length - SHOWN} more` : ''
    super('SLUICE_INVALID_RULE_SET', {
      problem: `${source} has ${problems.length === 1 ? 'a problem' : `${problems.length} problems`}: ${shown}${more}`,
      action: 'Nothing of it was taken over. Correct all of them and try again.',
    })
    this.problems = problems
  }
}

function sentence({ path, received, expected, line }: RuleSetProblem): string {
  const place = line === undefined ? '' : ` (line ${line})`
  return `${path === '' ? 'the whole' : path}${place} is ${received}, expected ${expected}`
}

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
