import { describe } from 'vitest'
import { adjustTests } from './store-adjust.suite.ts'
import { blockTests } from './store-blocks.suite.ts'
import { boundTests } from './store-bounds.suite.ts'
import { decisionTests } from './store-decisions.suite.ts'
import type { StoreHarness } from './store-fixture.ts'
import { isolationTests } from './store-isolation.suite.ts'
import { reservationTests } from './store-reservations.suite.ts'
import { timeTests } from './store-time.suite.ts'

/**
 * Proves that a store does what every store must: the whole limiter API over it, with exact counts. Call it inside a
 * test file. What the harness says the store lacks is skipped, with the reason shown.
 */
export function storeSuite(name: string, harness: StoreHarness): void {
  describe(`the store ${name}`, () => {
    decisionTests(harness)
    reservationTests(harness)
    adjustTests(harness)
    blockTests(harness)
    timeTests(harness)
    isolationTests(harness)
    boundTests(harness)
  })
}
