import { describe } from 'vitest'
import { chargeTests } from './middleware-charges.suite.ts'
import { decisionTests } from './middleware-decisions.suite.ts'
import { failureTests } from './middleware-failures.suite.ts'
import type { MiddlewareHarness } from './middleware-fixture.ts'

/**
 * Proves that the middleware of a framework does what all of them must: over real connections, with exact counts. Call
 * it inside a test file. What the harness says the framework lacks is skipped, with the reason shown.
 */
export function middlewareSuite(name: string, harness: MiddlewareHarness): void {
  describe(`the middleware for ${name}`, () => {
    decisionTests(harness)
    chargeTests(harness)
    failureTests(harness)
  })
}
