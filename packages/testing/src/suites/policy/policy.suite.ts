import { describe } from 'vitest'
import type { StoreHarness } from '../store/store-fixture.ts'
import { adaptiveLimitTests } from './policy-adaptive-limits.suite.ts'
import { calendarTests } from './policy-calendar.suite.ts'
import { exemptionTests } from './policy-exemptions.suite.ts'
import { explainTests } from './policy-explain.suite.ts'
import { penaltyTests } from './policy-penalties.suite.ts'
import { resolutionTests } from './policy-resolution.suite.ts'
import { rolloutTests } from './policy-rollout.suite.ts'
import { usageTests } from './policy-usage.suite.ts'

/**
 * Proves that rule sets are applied the same on a store as on every other: resolution, exemptions, roll-out, adaptive
 * limits, blocks, explanations and usage, with exact counts. Call it inside a test file.
 */
export function policySuite(name: string, harness: StoreHarness): void {
  describe(`rule sets ${name}`, () => {
    resolutionTests(harness)
    exemptionTests(harness)
    rolloutTests(harness)
    adaptiveLimitTests(harness)
    penaltyTests(harness)
    explainTests(harness)
    usageTests(harness)
    calendarTests(harness)
  })
}
