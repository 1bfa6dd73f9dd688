import { expect, it } from 'vitest'
import { compileRule } from '../rule-kinds.ts'
import { windowMsOf } from './limit.ts'
import type { Rule } from './rule.ts'

it.each<[Rule, number]>([
  [{ limit: 100, window: '1m' }, 60_000],
  [{ limit: 100, window: '1m', burst: 20 }, 60_000],
  [{ algorithm: 'token-bucket', capacity: 50, refillPerSecond: 10 }, 5000],
  [{ algorithm: 'leaky-bucket-queue', capacity: 1, ratePerSecond: 3 }, 334],
  [{ algorithm: 'fixed-window', limit: 5, window: '250ms' }, 250],
  [{ algorithm: 'fixed-window', limit: 5, window: { calendar: 'month' } }, 2_592_000_000],
  [{ algorithm: 'sliding-window-counter', limit: 5, window: '1h' }, 3_600_000],
  [{ algorithm: 'sliding-window-log', limit: 5, window: '1s' }, 1000],
  [{ algorithm: 'sliding-window-log', limit: 5, window: '1s', segments: 4 }, 1000],
  [{ algorithm: 'hybrid', limit: 5, window: '1d', burst: { capacity: 2, refillPerSecond: 1 } }, 86_400_000],
  [{ algorithm: 'concurrency', limit: 5, lease: '30s' }, 30_000],
])('%j is meant for %i ms', (rule, ms) => {
  expect(windowMsOf(compileRule('rule', rule)[0]!)).toBe(ms)
})
