// What the author of a store needs, and the decorators for stores that answer by promise: published as `sluice/store`.
export {
  type Algorithm,
  type Ask,
  algorithmOf,
  type Charge,
  type Correction,
  createVerdict,
  type State,
  type Verdict,
} from './algorithms/algorithm.ts'
export type { Limit } from './rule/limit.ts'
export { receiptOf } from './store/batch.ts'
export { decideBatch } from './store/decide-batch.ts'
export { type DenyCacheOptions, denyCacheStore } from './store/deny-cache/deny-cache-store.ts'
export type { BreakerOptions } from './store/fallback/breaker.ts'
export type { FallbackStoreOptions } from './store/fallback/fallback-options.ts'
export { type FallbackStore, type FallbackStoreStats, fallbackStore } from './store/fallback/fallback-store.ts'
export type { LeaseEvent } from './store/leased/lease-manager.ts'
export {
  type LeasedStore,
  type LeasedStoreOptions,
  type LeasedStoreStats,
  leasedStore,
} from './store/leased/leased-store.ts'
export { decideBesideLeases, type LeasedUnits } from './store/leased-units.ts'
export {
  type Answer,
  type Batch,
  type BlockTerm,
  blockTermOf,
  type Failure,
  type Item,
  type Mode,
  type Receipt,
  type Settlement,
  type Store,
} from './store/store.ts'
export { outcomeUnknown, type StoreErrorDetails, storeUnavailable } from './store/store-error.ts'
export type { BreakerState, StoreEvent, StoreObserver } from './store/store-event.ts'
