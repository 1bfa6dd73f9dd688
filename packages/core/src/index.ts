export { ERROR_CODES, type ErrorCode, isSluiceError, SluiceError } from './errors.ts'
export { createLimiter, type LimiterOptions, type SetOptions, type SingleOptions } from './limiter/create-limiter.ts'
export type { Allowed, Decision, Denied, DenyReason, LimitReport, Remaining } from './limiter/decision.ts'
export type {
  AcquireOptions,
  BlockOptions,
  CheckOptions,
  KeyRequest,
  Limiter,
  LimiterSet,
  ReserveOptions,
  RuleRequest,
} from './limiter/limiter.ts'
export type { Reservation } from './limiter/reservation.ts'
export type { CounterReport } from './policy/counter.ts'
export type { DescriptorCode, DescriptorDecision, DescriptorStatus } from './policy/descriptors/descriptor-decision.ts'
export {
  type DescriptorOptions,
  type DescriptorSource,
  decideDescriptors,
} from './policy/descriptors/descriptor-engine.ts'
export type { RequestsPerUnit } from './policy/descriptors/descriptor-limit.ts'
export type { DescriptorCharge } from './policy/descriptors/descriptor-plan.ts'
export type { DescriptorRequest, RequestDescriptor } from './policy/descriptors/descriptor-request.ts'
export type { CurrentLimit, DescriptorEntry, DescriptorRule } from './policy/descriptors/descriptor-rule.ts'
export { DescriptorMatch, DescriptorTree, type MatchKind } from './policy/descriptors/descriptor-tree.ts'
export { EngineEntries } from './policy/entries/engine-entries.ts'
export type { Block, Incident, Membership, Override, OverrideTerms } from './policy/entries/live-entry.ts'
export type { Explanation, LimitStep, RuleExplanation, RuleFate } from './policy/explain-decision.ts'
export type { CostFunction } from './policy/limits/compiled-rule.ts'
export type { PolicyDecision, PolicyDenyReason, PolicyLimitReport } from './policy/policy-decision.ts'
export {
  type PolicyAcquireOptions,
  PolicyEngine,
  type PolicyEngineOptions,
  type PolicyReserveOptions,
} from './policy/policy-engine.ts'
export type { PolicyEvent, PolicyObserver } from './policy/policy-event.ts'
export type { PolicyReservation, ReservationClaim } from './policy/policy-reservation.ts'
export type { NumberedRuleSet, PolicyVersions } from './policy/policy-versions.ts'
export {
  assertRuleSet,
  checkBlock,
  checkIncident,
  checkMembership,
  checkOverride,
  checkRuleSet,
  checkRuleSetFile,
  type RuleSetCheckOptions,
} from './policy/rule-set/checks/check-rule-set.ts'
export { diffRuleSets, type RuleSetChange } from './policy/rule-set/checks/rule-set-diff.ts'
export { type FileContent, fileContent, type InFile, type RuleSetFile } from './policy/rule-set/checks/rule-set-file.ts'
export type {
  DescriptorDomain,
  DescriptorLimit,
  DescriptorNode,
  DescriptorUnit,
} from './policy/rule-set/descriptor-domain.ts'
export type { PolicyRequest } from './policy/rule-set/policy-request.ts'
export type {
  DenyEntry,
  Dimension,
  ErrorRateCut,
  Exemption,
  Penalty,
  PolicyRule,
  PolicyRuleSettings,
  RequestMatch,
  RuleCost,
  RuleSet,
  ScheduleEntry,
  Tier,
} from './policy/rule-set/rule-set.ts'
export type { RuleSetProblem } from './policy/rule-set/rule-set-error.ts'
export { RuleSetError } from './policy/rule-set/rule-set-error.ts'
export { type UndeclaredDimension, undeclaredDimensions } from './policy/rule-set/undeclared-dimensions.ts'
export type { Caller, UsageReport } from './policy/usage.ts'
export type { CalendarPeriod } from './rule/calendar.ts'
export type { Duration } from './rule/duration.ts'
export type { FailureMode } from './rule/rule.ts'
export {
  type AlgorithmRule,
  type BucketUnits,
  type CalendarWindow,
  type ConcurrencyRule,
  concurrency,
  type FixedWindowRule,
  fixedWindow,
  type GcraRule,
  gcra,
  type HybridRule,
  hybrid,
  type LeakyBucketMeterRule,
  type LeakyBucketQueueRule,
  leakyBucketMeter,
  leakyBucketQueue,
  type Rule,
  type RuleSettings,
  type SlidingWindowCounterRule,
  type SlidingWindowLogRule,
  slidingWindowCounter,
  slidingWindowLog,
  type TokenBucketRule,
  tokenBucket,
  type Units,
  type Weekday,
  type WindowSpec,
} from './rule/rule.ts'
export { type DenyCacheOptions, denyCacheStore } from './store/deny-cache/deny-cache-store.ts'
export type { BreakerOptions } from './store/fallback/breaker.ts'
export type { FallbackStoreOptions } from './store/fallback/fallback-options.ts'
export { type FallbackStore, type FallbackStoreStats, fallbackStore } from './store/fallback/fallback-store.ts'
export { joinKey } from './store/key.ts'
export type { LeaseEvent } from './store/leased/lease-manager.ts'
export {
  type LeasedStore,
  type LeasedStoreOptions,
  type LeasedStoreStats,
  leasedStore,
} from './store/leased/leased-store.ts'
export {
  type MemoryStore,
  type MemoryStoreOptions,
  type MemoryStoreStats,
  memoryStore,
} from './store/memory/memory-store.ts'
export {
  type AttachOptions,
  attachSharedMemoryStore,
  type SharedMemoryHandle,
  type SharedMemoryStore,
  type SharedMemoryStoreOptions,
  sharedMemoryStore,
} from './store/shared/shared-memory-store.ts'
export type { Answer, Failure, Mode, Settlement, Store } from './store/store.ts'
export type { BreakerState, StoreEvent, StoreObserver } from './store/store-event.ts'
export type { AbortSignalLike } from './system/abort.ts'
export type { Clock } from './system/clock.ts'
export { systemClock } from './system/clock.ts'
export type { Random } from './system/random.ts'
export { systemRandom } from './system/random.ts'
export type { Timers } from './system/timers.ts'
export { systemTimers } from './system/timers.ts'
