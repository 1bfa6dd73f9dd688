export {
  type Algorithm,
  type Ask,
  type Charge,
  type Correction,
  createVerdict,
  LATEST,
  NEVER,
  type Ruling,
  type State,
  step,
  type Verdict,
} from './algorithms/algorithm.ts'
export { ALGORITHMS, algorithmOf } from './algorithms/registry.ts'
export { compileRule } from './compile-rule.ts'
export { decisionOn, isLess } from './limiter/decision.ts'
export { type CountingPlace, placeOf } from './limiter/limiter-registry.ts'
export { settle } from './limiter/releases.ts'
export { checkOptionNames, checkSignal, type OptionTaker } from './options/known-options.ts'
export { nearestName } from './options/nearest-name.ts'
export { optionAdvice } from './options/option-advice.ts'
export { scaleRule } from './policy/limits/rule-numbers.ts'
export { sha256 } from './policy/limits/sha256.ts'
export { type Cidr, parseCidr } from './policy/matching/cidr.ts'
export { CidrTable } from './policy/matching/cidr-table.ts'
export { countedAddress, countedEntity } from './policy/matching/counted-address.ts'
export { IpAddress, parseIp } from './policy/matching/ip-address.ts'
export { RecentMap } from './policy/matching/recent-map.ts'
export { PatternSpellings } from './policy/matching/resource-pattern.ts'
export { canonicalDimension, ruleName } from './policy/matching/rule-name.ts'
export { SchemaCheck } from './policy/rule-set/checks/schema-check.ts'
export type { JsonSchema } from './policy/rule-set/schema/json-schema.ts'
export { RULE_SET_FILE_SCHEMA, RULE_SET_SCHEMA } from './policy/rule-set/schema/rule-set-schema.ts'
export { type CalendarPeriod, calendarWindow } from './rule/calendar.ts'
export { durationMs } from './rule/duration.ts'
export type { Limit } from './rule/limit.ts'
export { MICROS_PER_UNIT } from './rule/rate.ts'
export { createBatch, createItem, drawHolder } from './store/batch.ts'
export { CallbackStore, callbackStore, completeAfter, type PendingBatch } from './store/callback-store.ts'
export { noteSpace, spaceOf } from './store/counter-namespace.ts'
export { decideBatch } from './store/decide-batch.ts'
export { Breaker, type BreakerStart, NOT_ADMITTED } from './store/fallback/breaker.ts'
export { DeadlineQueue, type WaitingCall } from './store/fallback/deadline-queue.ts'
export { startingFallbackStore } from './store/fallback/fallback-store.ts'
export { shareOf } from './store/fallback/limit-share.ts'
export { decideBesideLeases, type LeasedUnits } from './store/leased-units.ts'
export { outcomeOf, receiptOf } from './store/receipt.ts'
export { attachWithFaults } from './store/shared/shared-memory-store.ts'
export type { CommitStep } from './store/shared/transaction.ts'
export type { Batch, Item, Receipt } from './store/store.ts'
export { type BlockTerm, blockTermOf } from './store/store.ts'
export { assertStore } from './store/store-check.ts'
export {
  failureOf,
  outcomeUnknown,
  StoreError,
  type StoreErrorDetails,
  type StoreFailure,
  storeUnavailable,
} from './store/store-error.ts'
export { tell } from './store/store-event.ts'
export { MICROS_PER_MS, MICROS_PER_SECOND, systemMonotonicMs } from './system/clock.ts'
