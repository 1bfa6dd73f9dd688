import { canonicalPattern } from '../../matching/resource-pattern.ts'
import { describeValue } from '../schema/schema-node.ts'
import type { ProblemList, Properties } from './problem-list.ts'
import { objectsIn } from './problem-list.ts'
import { checkEntityDimension, checkExpiry, checkResource } from './resource-and-dimension-check.ts'
import { checkDurations, checkWindows } from './rule-options-check.ts'

/** Checks what an override means, where its form is right. */
export function checkOverrideMeaning(problems: ProblemList, override: Properties, path: string): void {
  checkEntityDimension(problems, override, path)
  checkExpiry(problems, override, path)
  checkResource(problems, override, path)
  const { terms } = override
  if (typeof terms !== 'object' || terms === null) return
  checkDurations(problems, { subject: terms as Properties, names: ['window'] }, `${path}/terms`)
  checkWindows(problems, terms as Properties, `${path}/terms`)
}

/** Checks what a block means, where its form is right. */
export function checkBlockMeaning(problems: ProblemList, block: Properties, path: string): void {
  checkEntityDimension(problems, block, path)
  const { until, forgottenAt } = block
  if (typeof until !== 'number' || typeof forgottenAt !== 'number' || forgottenAt >= until) return
  problems.add(`${path}/forgottenAt`, describeValue(forgottenAt), `at least ${until}, which is "until"`)
}

/** Checks the overrides of a file: what each means, and that no two are for the same. */
export function checkOverrides(problems: ProblemList, overrides: unknown, path: string): void {
  const seen = new Map<string, string>()
  for (const [override, place] of objectsIn(overrides, path)) {
    checkOverrideMeaning(problems, override, place)
    const { dimension, entity, resource } = override
    if (typeof resource !== 'string') continue
    const subject = JSON.stringify([dimension, entity, canonicalPattern(resource)])
    checkOnce(problems, { seen, subject, expected: 'one override for each dimension, entity and resource' }, place)
  }
}

/** Checks the members of a file: that their tiers exist, and that no member belongs to two. */
export function checkMembers(
  problems: ProblemList,
  { members, tiers }: { readonly members: unknown; readonly tiers: readonly string[] },
  path: string,
): void {
  const seen = new Map<string, string>()
  for (const [member, place] of objectsIn(members, path)) {
    const { dimension, entity, tier } = member
    checkExpiry(problems, member, place)
    if (typeof tier === 'string' && problems.isSound(`${place}/tier`) && !tiers.includes(tier)) {
      const expected = tiers.length === 0 ? 'a tier of "tiers": there are none' : `one of ${tiers.join(', ')}`
      problems.add(`${place}/tier`, describeValue(tier), expected)
    }
    const subject = JSON.stringify([dimension, entity])
    checkOnce(problems, { seen, subject, expected: 'one tier for each caller' }, place)
  }
}

function checkOnce(
  problems: ProblemList,
  {
    seen,
    subject,
    expected,
  }: { readonly seen: Map<string, string>; readonly subject: string; readonly expected: string },
  path: string,
): void {
  if (!problems.isSound(path)) return
  const first = seen.get(subject)
  if (first === undefined) seen.set(subject, path)
  else problems.add(path, `for the same as ${first}`, expected)
}
