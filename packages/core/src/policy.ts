// Rule sets and the engine that applies them: published as `sluice/policy`.
export type { CounterReport } from './policy/counter-report.ts'
export type { DescriptorDecision, DescriptorStatus } from './policy/descriptors/descriptor-decision.ts'
export type { DescriptorOptions } from './policy/descriptors/descriptor-engine.ts'
export type { DescriptorRequest } from './policy/descriptors/descriptor-request.ts'
export type { EngineEntries } from './policy/entries/live-entries.ts'
export type { Block, Incident, Membership, Override } from './policy/entries/live-entry.ts'
export type { Explanation } from './policy/explain-decision.ts'
export type { CostFunction } from './policy/limits/compiled-rule.ts'
export type { PolicyDecision } from './policy/policy-decision.ts'
export { PolicyEngine } from './policy/policy-engine.ts'
export type {
  Offence,
  PolicyAcquireOptions,
  PolicyEngineOptions,
  PolicyReserveOptions,
} from './policy/policy-engine-options.ts'
export type { PolicyEvent, PolicyObserver } from './policy/policy-event.ts'
export type { PolicyReservation, ReservationClaim } from './policy/policy-reservation.ts'
export type { PolicyVersions } from './policy/policy-versions.ts'
export {
  assertRuleSet,
  checkRuleSet,
  checkRuleSetFile,
  type RuleSetCheckOptions,
} from './policy/rule-set/checks/check-rule-set.ts'
export { diffRuleSets, type RuleSetChange } from './policy/rule-set/checks/rule-set-diff.ts'
export type { FileContent, GatewayParts, RuleSetFile } from './policy/rule-set/checks/rule-set-file.ts'
export type {
  DescriptorDomain,
  DescriptorLimit,
  DescriptorNode,
  DescriptorUnit,
} from './policy/rule-set/descriptor-domain.ts'
export type { PolicyRequest } from './policy/rule-set/policy-request.ts'
export type {
  DenyEntry,
  ErrorRateCut,
  Exemption,
  Penalty,
  PolicyRule,
  RequestMatch,
  RuleSet,
  ScheduleEntry,
  Tier,
} from './policy/rule-set/rule-set.ts'
export { RuleSetError, type RuleSetProblem } from './policy/rule-set/rule-set-error.ts'
export type { UndeclaredDimension } from './policy/rule-set/undeclared-dimensions.ts'
export type { Caller, UsageReport } from './policy/usage-report.ts'
