import type { VersionContent } from '@sluice/config-store'
import type { RuleSet } from '@sluice/core'
import type { OperationRequest } from '../handler.ts'
import type { PlaceOf } from '../problem-path.ts'
import { placingProblems } from '../problems.ts'
import type { ConfigAccess } from './config-access.ts'
import type { Expected } from './precondition.ts'
import { expectedOf, underPrecondition } from './precondition.ts'

/** The rule set that is enforced. */
export interface EnforcedRules {
  /** 0 when none is. */
  readonly number: number
  readonly ruleSet: RuleSet
}

const NO_RULES: EnforcedRules = { number: 0, ruleSet: { rules: [] } }

/** Reads the rule set that is enforced. */
export async function enforcedRules(access: ConfigAccess): Promise<EnforcedRules> {
  const { versions } = access.reads
  const { enforced } = await versions.current()
  if (enforced === undefined) return NO_RULES
  const content: VersionContent | undefined = await versions.get(enforced.number)
  return content ?? NO_RULES
}

/** A change of the rule set. */
export interface RuleSetEdit {
  /** The rule set with the change. May be called again; may throw a `Refusal`. `expected`: what is changed, as the request says. */
  readonly change: (ruleSet: RuleSet, expected: Expected | undefined) => RuleSet
  /** By the place in the changed rule set. */
  readonly placeOf: PlaceOf
}

/**
 * Makes a version out of the enforced one and enforces it, in one step; resolves with its number. `If-Match` names the version
 * that the editor has seen.
 */
export async function editRules(
  access: ConfigAccess,
  request: OperationRequest,
  { change, placeOf }: RuleSetEdit,
): Promise<number> {
  const expected = expectedOf(request)
  const ifVersion = typeof expected === 'number' ? expected : undefined
  const edit = (ruleSet: RuleSet): RuleSet => {
    const changed = change(ruleSet, expected)
    access.refuseUnfit(changed, placeOf)
    return changed
  }
  const { number } = await underPrecondition(request, () =>
    placingProblems(placeOf, () =>
      access.change(request, (config, author) => config.versions.edit(edit, author, ifVersion)),
    ),
  )
  return number
}
