export { type AlgorithmSuiteOptions, algorithmSuite } from './algorithm.suite.ts'
export {
  type AlgorithmName,
  type Call,
  type CallSequence,
  callSequences,
  HOSTILE_KEYS,
  keys,
  rules,
} from './arbitraries.ts'
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
} from './differential.ts'
export { FakeClock, START_MICROS } from './fake-clock.ts'
export { FakeTimers } from './fake-timers.ts'
export { middlewareSuite } from './middleware.suite.ts'
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
} from './middleware-scene.ts'
export { policySuite } from './policy.suite.ts'
export { deferredStore, ReferenceStore } from './reference-store.ts'
export { seededRandom } from './seeded-random.ts'
export { storeSuite } from './store.suite.ts'
export type { StoreCapability, StoreHarness } from './store-scene.ts'
export { type Death, type RaceCall, type RacePlan, runThreadRace } from './thread-race.ts'
