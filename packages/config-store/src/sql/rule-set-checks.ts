export {
  assertRuleSet,
  checkBlock,
  checkIncident,
  checkMembership,
  checkOverride,
} from '../../../core/src/policy/check-rule-set.ts'
export { diffRuleSets } from '../../../core/src/policy/rule-set-diff.ts'
