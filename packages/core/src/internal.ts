// For the packages of this workspace only: what they share with the core and no user needs. May change at any time.
export { LATEST, NEVER, step } from './algorithms/algorithm.ts'
export { ALGORITHMS } from './algorithms/registry.ts'
export { compileRule } from './compile-rule.ts'
export { decisionOn, isLess } from './limiter/decision.ts'
export { placeOf } from './limiter/limiter-registry.ts'
export { settle } from './limiter/releases.ts'
export { checkOptionNames, checkSignal, checkWhole, type OptionTaker } from './options/known-options.ts'
export { nearestName, optionAdvice } from './options/option-advice.ts'
export type { DescriptorEntry } from './policy/descriptors/descriptor-rule.ts'
export { DescriptorTree } from './policy/descriptors/descriptor-tree.ts'
export { countedEntity } from './policy/entries/live-entry.ts'
export { scaleRule } from './policy/limits/rule-numbers.ts'
export { sha256 } from './policy/limits/sha256.ts'
export { type Cidr, CidrTable, parseCidr } from './policy/matching/cidr.ts'
export { countedAddress, IpAddress, parseIp } from './policy/matching/ip-address.ts'
export { RecentMap } from './policy/matching/recent-map.ts'
export { PatternSpellings } from './policy/matching/resource-pattern.ts'
export { canonicalDimension, ruleName } from './policy/matching/rule-name.ts'
export {
  checkBlock,
  checkIncident,
  checkMembership,
  checkOverride,
} from './policy/rule-set/checks/check-rule-set.ts'
export { fileContent } from './policy/rule-set/checks/rule-set-file.ts'
export { pointerTo, SchemaCheck } from './policy/rule-set/checks/schema-check.ts'
export type { JsonSchema } from './policy/rule-set/schema/json-schema.ts'
export { RULE_SET_FILE_SCHEMA, RULE_SET_SCHEMA } from './policy/rule-set/schema/rule-set-schema.ts'
export { undeclaredDimensions } from './policy/rule-set/undeclared-dimensions.ts'
export { type CalendarPeriod, calendarWindow } from './rule/calendar.ts'
export { durationMs } from './rule/duration.ts'
export { MICROS_PER_UNIT } from './rule/rate.ts'
export type { AlgorithmRule, CalendarWindow, Units, WindowSpec } from './rule/rule.ts'
export { createBatch, createItem, drawHolder } from './store/batch.ts'
export {
  type AnswerListener,
  type AskedQuestion,
  askByPromise,
  asListened,
  decideByListening,
  type ListenedStore,
} from './store/callback-store.ts'
export { noteSpace, spaceOf } from './store/counter-namespace.ts'
export { Breaker, type BreakerStart, NOT_ADMITTED } from './store/fallback/breaker.ts'
export { DeadlineQueue, type WaitingCall } from './store/fallback/deadline-queue.ts'
export { startingFallbackStore } from './store/fallback/fallback-store.ts'
export { attachWithFaults } from './store/shared/shared-memory-store.ts'
export type { CommitStep } from './store/shared/transaction.ts'
export { assertStore } from './store/store-check.ts'
export { failureOf, StoreError } from './store/store-error.ts'
export { tell } from './store/store-event.ts'
export { MICROS_PER_MS, MICROS_PER_SECOND, systemMonotonicMs } from './system/clock.ts'
export { type RetryDelay, retryDelayMs } from './system/retry-delay.ts'
