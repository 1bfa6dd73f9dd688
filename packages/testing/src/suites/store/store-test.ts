import type { Rule } from '@sluice/core'
import { it } from 'vitest'
import type { AlgorithmName } from '../../properties/arbitraries.ts'
import type { StoreCapability, StoreFixture, StoreHarness } from './store-fixture.ts'
import { withStore } from './store-fixture.ts'

/** A test of a store, skipped with the harness's reason when the store lacks something that it needs. */
export function storeTest(
  harness: StoreHarness,
  { title, needs = [] }: { readonly title: string; readonly needs?: readonly StoreCapability[] },
  run: (fixture: StoreFixture) => void | Promise<void>,
): void {
  it(title, async ({ skip }) => {
    for (const capability of needs) {
      const reason = harness.lacks?.[capability]
      if (reason !== undefined) skip(reason)
    }
    await withStore(harness, run)
  })
}

/** A rule of every algorithm that gives 6 units and then nothing for a long time. */
const SIX_UNITS: { readonly [A in AlgorithmName]: Rule } = {
  'token-bucket': { algorithm: 'token-bucket', capacity: 6, refillPerSecond: 1e-6 },
  'token-bucket-rollover': { algorithm: 'token-bucket', capacity: 6, refillPerSecond: 1e-6, rollover: true },
  'leaky-bucket-meter': { algorithm: 'leaky-bucket-meter', capacity: 6, leakPerSecond: 1e-6 },
  'leaky-bucket-queue': { algorithm: 'leaky-bucket-queue', capacity: 6, ratePerSecond: 1e-6 },
  gcra: { limit: 6, window: '52w' },
  'fixed-window': { algorithm: 'fixed-window', limit: 6, window: '52w' },
  'sliding-window-counter': { algorithm: 'sliding-window-counter', limit: 6, window: '52w' },
  'sliding-window-log': { algorithm: 'sliding-window-log', limit: 6, window: '52w' },
  'sliding-window-segments': { algorithm: 'sliding-window-log', limit: 6, window: '52w', segments: 4 },
  hybrid: { algorithm: 'hybrid', limit: 4, window: '52w', burst: { capacity: 2, refillPerSecond: 1e-6 } },
  concurrency: { algorithm: 'concurrency', limit: 6, lease: '52w' },
}

/** What a store needs for a rule. */
export function needsOf(algorithm: AlgorithmName): StoreCapability[] {
  const isLong = ['sliding-window-log', 'sliding-window-segments', 'concurrency'].includes(algorithm)
  return isLong ? ['long-states'] : []
}

/** Every algorithm with its rule of six units and what a store needs for it. */
export const EVERY_ALGORITHM: readonly { readonly algorithm: AlgorithmName; readonly rule: Rule }[] = Object.entries(
  SIX_UNITS,
).map(([algorithm, rule]) => ({ algorithm: algorithm as AlgorithmName, rule }))
