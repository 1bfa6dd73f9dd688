export { FakeClock, START_MICROS } from './fakes/fake-clock.ts'
export { FakeTimers } from './fakes/fake-timers.ts'
export { seededRandom } from './fakes/seeded-random.ts'
export { deferredStore, ReferenceStore } from './models/reference-store.ts'
export {
  type AlgorithmName,
  type Call,
  type CallSequence,
  callSequences,
  HOSTILE_KEYS,
  keys,
  rules,
} from './properties/arbitraries.ts'
export {
  expectSameDecisions,
  expectSameStores,
  OPERATION_RULES,
  type Operation,
  type OperationOptions,
  type OperationRule,
  type OperationSequence,
  operations,
  RULES_OF,
} from './properties/differential.ts'
export { type Death, type RaceCall, type RacePlan, runThreadRace } from './races/thread-race.ts'
export { type AlgorithmSuiteOptions, algorithmSuite } from './suites/algorithm/algorithm.suite.ts'
export { middlewareSuite } from './suites/middleware/middleware.suite.ts'
export {
  type MiddlewareCapability,
  type MiddlewareHarness,
  type RunningApp,
  type ServedApp,
  SUITE_PATHS,
  type SuiteAnswer,
  type SuiteCall,
  type SuiteDecision,
  type SuiteOptions,
  type SuiteRequest,
} from './suites/middleware/middleware-fixture.ts'
export { policySuite } from './suites/policy/policy.suite.ts'
export { storeSuite } from './suites/store/store.suite.ts'
export type { StoreCapability, StoreHarness } from './suites/store/store-fixture.ts'
