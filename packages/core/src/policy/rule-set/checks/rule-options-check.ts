import { isSluiceError } from '../../../errors.ts'
import { durationMs } from '../../../rule/duration.ts'
import type { Rule } from '../../../rule/rule.ts'
import { compileRule } from '../../../rule-kinds.ts'
import { ALGORITHM_OPTIONS } from '../schema/algorithm-schemas.ts'
import { describeValue } from '../schema/schema-node.ts'
import type { ProblemList, Properties } from './problem-list.ts'
import { objectsIn } from './problem-list.ts'

/** Checks the numbers of a rule as its algorithm understands them. */
export function checkOptions(problems: ProblemList, rule: Properties, path: string): void {
  const options: Record<string, unknown> = {}
  for (const name of ALGORITHM_OPTIONS) {
    if (!problems.isSound(`${path}/${name}`)) return
    if (rule[name] !== undefined) options[name] = rule[name]
  }
  const { windows, ...others } = options
  if (windows === undefined) {
    checkCompiled(problems, options, path)
    return
  }
  // Each on its own first, which tells the place of what is wrong; then together, as no two may be of one length.
  let isSound = true
  for (const [entry, place] of objectsIn(windows, `${path}/windows`)) {
    isSound = checkCompiled(problems, { ...others, ...entry }, place) && isSound
  }
  if (isSound) checkCompiled(problems, options, path)
}

/** Checks the windows that an override puts in the place of a rule's. */
export function checkWindows(problems: ProblemList, terms: Properties, path: string): void {
  if (terms['windows'] === undefined || !problems.isSound(path)) return
  checkOptions(problems, { windows: terms['windows'] }, path)
}

/** Checks those of the named properties that are there as durations; the length of each in milliseconds. */
export function checkDurations(
  problems: ProblemList,
  { subject, names }: { readonly subject: Properties; readonly names: readonly string[] },
  path: string,
): ReadonlyMap<string, number> {
  const lengths = new Map<string, number>()
  for (const name of names) {
    if (subject[name] === undefined || !problems.isSound(`${path}/${name}`)) continue
    told(problems, path, () => {
      lengths.set(name, durationMs(subject[name], name))
    })
  }
  return lengths
}

/** Checks when and how much limits are cut because of failures. */
export function checkErrorRate(problems: ProblemList, errorRate: unknown, path: string): void {
  if (typeof errorRate !== 'object' || errorRate === null) return
  const subject = errorRate as Properties
  checkDurations(problems, { subject, names: ['window', 'hold'] }, path)
  if (!problems.isSound(`${path}/cutAbove`) || !problems.isSound(`${path}/restoreBelow`)) return
  const { cutAbove, restoreBelow } = errorRate as { cutAbove: number; restoreBelow: number }
  if (restoreBelow > cutAbove) {
    problems.add(`${path}/restoreBelow`, describeValue(restoreBelow), `at most ${cutAbove}, which is "cutAbove"`)
  }
}

/** Checks how callers are blocked that go on after being denied. */
export function checkPenalty(problems: ProblemList, penalty: unknown, path: string): void {
  if (typeof penalty !== 'object' || penalty === null) return
  const subject = penalty as Properties
  const lengths = checkDurations(problems, { subject, names: ['within', 'block', 'longest', 'forgetAfter'] }, path)
  const [blockMs, longestMs] = [lengths.get('block'), lengths.get('longest')]
  if (blockMs !== undefined && longestMs !== undefined && longestMs < blockMs) {
    problems.add(
      `${path}/longest`,
      describeValue(subject['longest']),
      `at least ${describeValue(subject['block'])}, which is "block"`,
    )
  }
}

function checkCompiled(problems: ProblemList, options: Properties, path: string): boolean {
  return told(problems, path, () => {
    compileRule('rule', options as unknown as Rule)
  })
}

/** Does it; when that cannot be done, tells why and returns false. */
function told(problems: ProblemList, path: string, act: () => void): boolean {
  try {
    act()
    return true
  } catch (error) {
    if (!isSluiceError(error)) throw error
    const { received, expected = 'what can be used', action } = error
    // The message without its code and the name of the rule, which are not known to who wrote it.
    const [problem = ''] = error.message.replace(/^\w+: (?:rule "rule" has (?:an? )?)?/, '').split(';')
    const option = /"(\w+)"/.exec(problem)?.[1] ?? ''
    problems.add(
      `${path}/${option === 'timeZone' ? 'window/timeZone' : option}`,
      received === undefined ? problem : describeValue(received),
      action === undefined ? expected : `${expected} (${action.replace(/\.$/, '')})`,
    )
    return false
  }
}
