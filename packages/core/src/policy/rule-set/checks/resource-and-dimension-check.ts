import { parseCidr } from '../../matching/cidr.ts'
import { parsePattern } from '../../matching/resource-pattern.ts'
import { canonicalDimension } from '../../matching/rule-name.ts'
import { parseInstant } from '../instant.ts'
import { describeValue } from '../schema/schema-node.ts'
import type { ProblemList, Properties } from './problem-list.ts'

/** Checks the `resource` of something; its canonical spelling, or undefined when it cannot be used, or is not there. */
export function checkResource(problems: ProblemList, subject: Properties, path: string): string | undefined {
  const { resource } = subject
  if (typeof resource !== 'string' || !problems.isSound(`${path}/resource`)) return undefined
  const pattern = parsePattern(resource)
  if (!('problem' in pattern)) return pattern.canonical
  problems.add(`${path}/resource`, describeValue(resource), `a resource that can be matched: ${pattern.problem}`)
  return undefined
}

/** Checks the `dimension` of something; false when it cannot be used, or is not there. */
export function checkDimension(problems: ProblemList, subject: Properties, path: string): boolean {
  const { dimension } = subject
  if (typeof dimension !== 'string' || !problems.isSound(`${path}/dimension`)) return false
  const expected = dimensionProblem(dimension)
  if (expected === undefined) return true
  problems.add(`${path}/dimension`, describeValue(dimension), expected)
  return false
}

/** Checks the `dimension` of entities. The parts of theirs have an order, and one only, as requests are read. */
export function checkEntityDimension(problems: ProblemList, subject: Properties, path: string): void {
  if (!checkDimension(problems, subject, path)) return
  const dimension = subject['dimension'] as string
  const canonical = canonicalDimension(dimension)
  if (dimension === canonical) return
  const expected = `"${canonical}", with the parts of the entity in the same order`
  problems.add(`${path}/dimension`, describeValue(dimension), expected)
}

/** Checks which requests are meant by an exemption or a deny entry. */
export function checkMatch(problems: ProblemList, match: unknown, path: string): void {
  if (typeof match !== 'object' || match === null) return
  const subject = match as Properties
  checkResource(problems, subject, path)
  checkEntityDimension(problems, subject, path)
  const { cidrs } = subject
  if (!Array.isArray(cidrs)) return
  for (const [index, text] of cidrs.entries()) {
    if (typeof text !== 'string' || !problems.isSound(`${path}/cidrs/${index}`)) continue
    const block = parseCidr(text)
    if (!('problem' in block)) continue
    problems.add(`${path}/cidrs/${index}`, describeValue(text), `addresses that can be matched: ${block.problem}`)
  }
}

/** Checks when something ends, where that is a string: it must be a day that exists. */
export function checkExpiry(problems: ProblemList, { expiresAt }: Properties, path: string): void {
  if (typeof expiresAt !== 'string' || !problems.isSound(`${path}/expiresAt`)) return
  if (parseInstant(expiresAt) !== undefined) return
  problems.add(`${path}/expiresAt`, describeValue(expiresAt), 'a day and time that exist')
}

function dimensionProblem(dimension: string): string | undefined {
  if (!dimension.includes('+')) return undefined
  const names = dimension.split('+')
  if (names.includes('global')) return 'no "global" beside others: it is the same for all calls'
  return new Set(names).size === names.length ? undefined : 'each name once'
}
