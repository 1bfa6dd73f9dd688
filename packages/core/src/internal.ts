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
export { createBatch, createItem, drawHolder } from './batch.ts'
export { type CalendarPeriod, calendarWindow } from './calendar.ts'
export { MICROS_PER_MS, MICROS_PER_SECOND } from './clock.ts'
export { compileRule } from './compile-rule.ts'
export { type CountingPlace, placeOf } from './counting-place.ts'
export { decisionOn, isLess } from './decision.ts'
export { durationMs } from './duration.ts'
export type { Limit } from './limit.ts'
export { nearestName } from './nearest-name.ts'
export { optionAdvice } from './option-advice.ts'
export { checkOptionNames, checkSignal, type OptionTaker } from './option-check.ts'
export { type Cidr, parseCidr } from './policy/cidr.ts'
export { CidrTable } from './policy/cidr-table.ts'
export { countedAddress } from './policy/counted-address.ts'
export { countedEntity } from './policy/counted-entity.ts'
export { IpAddress, parseIp } from './policy/ip-address.ts'
export { PatternSpellings } from './policy/pattern-spellings.ts'
export { RecentMap } from './policy/recent-map.ts'
export { canonicalDimension, ruleName } from './policy/rule-name.ts'
export { scaleRule } from './policy/rule-numbers.ts'
export { RULE_SET_FILE_SCHEMA, RULE_SET_SCHEMA } from './policy/rule-set-schema.ts'
export type { JsonSchema } from './policy/schema/json-schema.ts'
export { SchemaCheck } from './policy/schema-check.ts'
export { sha256 } from './policy/sha256.ts'
export { MICROS_PER_UNIT } from './rate.ts'
export { settle } from './releases.ts'
export { decideBatch } from './store/batch-decision.ts'
export { type BlockTerm, blockTermOf } from './store/block-term.ts'
export { Breaker, type BreakerStart, NOT_ADMITTED } from './store/breaker.ts'
export { noteSpace, spaceOf } from './store/counter-space.ts'
export { DeadlineLine, type WaitingCall } from './store/deadline-line.ts'
export { startingFallbackStore } from './store/fallback-store.ts'
export { decideBesideLeases, type LeasedUnits } from './store/leased-units.ts'
export { shareOf } from './store/limit-share.ts'
export {
  type AnswerListener,
  type AskedQuestion,
  askByPromise,
  asListened,
  decideByListening,
  isListened,
  type ListenedStore,
} from './store/listening.ts'
export { outcomeOf, receiptOf } from './store/receipt.ts'
export type { CommitStep } from './store/shared/transaction.ts'
export { attachWithFaults } from './store/shared-memory-store.ts'
export type { Batch, Item, Receipt } from './store/store.ts'
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
export { systemMonotonicMs } from './system-clock.ts'
