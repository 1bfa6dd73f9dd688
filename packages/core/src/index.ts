// The limiter: what most users need. The list is the reference page docs/reference/library.md, and a test compares the
// two.
export { ERROR_CODES, type ErrorCode, isSluiceError, SluiceError } from './errors.ts'
export { createLimiter } from './limiter/create-any-limiter.ts'
export type { LimiterOptions } from './limiter/create-limiter.ts'
export type { Allowed, Decision, Denied, LimitReport } from './limiter/decision.ts'
export type {
  AcquireOptions,
  CheckOptions,
  KeyRequest,
  Limiter,
  LimiterSet,
  ReserveOptions,
  RuleRequest,
} from './limiter/limiter.ts'
export type { Reservation } from './limiter/reservation.ts'
export type { Duration } from './rule/duration.ts'
export {
  concurrency,
  type FailureMode,
  fixedWindow,
  gcra,
  hybrid,
  leakyBucketMeter,
  leakyBucketQueue,
  type Rule,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from './rule/rule.ts'
export { joinKey } from './store/key.ts'
export { type MemoryStore, memoryStore } from './store/memory/memory-store.ts'
export {
  attachSharedMemoryStore,
  type SharedMemoryHandle,
  type SharedMemoryStore,
  sharedMemoryStore,
} from './store/shared/shared-memory-store.ts'
export type { Settlement, Store } from './store/store.ts'
export { type Clock, systemClock, systemTimers, type Timers } from './system/clock-and-timers.ts'
export { type Random, systemRandom } from './system/random.ts'
