/** How many tests ended how. */
export interface TestSummary {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** The parts of the report of vitest's `json` reporter that are read here. */
interface TestReport {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly {
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

/**
 * Counts the tests of a report. Failures outside a test count as one failed test each: a file that did not load, and,
 * when the runner failed although no test did, whatever made it fail. So `failed` is 0 exactly when the run was good.
 */
export function summarizeTests(reportJson: string, exitCode: number): TestSummary {
  const report = JSON.parse(reportJson) as TestReport
  const brokenFiles = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length
  const failed = report.numFailedTests + brokenFiles
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  }
}

/** The line that ends a run of the tests; other programs read it. */
export function formatSummary({ passed, failed, skipped }: TestSummary): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`
}
