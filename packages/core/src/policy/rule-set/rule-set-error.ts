import { SluiceError } from '../../errors.ts'

const SHOWN = 5

/** An invalid rule set with all its problems; code `SLUICE_INVALID_RULE_SET`. */
export class RuleSetError extends SluiceError {
  /** All problems, in the order of the rule set; at least one. */
  readonly problems: readonly RuleSetProblem[]

  /** `source`: origin of the rule set, such as the name of a file. */
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

/** One problem of a rule set. */
export interface RuleSetProblem {
  /** Its location as a JSON pointer such as `/rules/3/window`; empty for the whole. */
  readonly path: string
  /** The received value, in short. */
  readonly received: string
  readonly expected: string
  /** Line in the file, counted from 1, if it was read from one. */
  readonly line?: number
}
