export { algorithmSuite, type AlgorithmSuiteOptions } from './algorithm.suite.ts'
export {
  type AlgorithmName,
  type Call,
  callSequences,
  type CallSequence,
  HOSTILE_KEYS,
  keys,
  rules,
} from './arbitraries.ts'
export { FakeClock, START_MICROS } from './fake-clock.ts'
export { FakeTimers } from './fake-timers.ts'
export { seededRandom } from './seeded-random.ts'
export { type RaceCall, type RacePlan, runThreadRace } from './thread-race.ts'
