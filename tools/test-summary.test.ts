import { describe, expect, it } from 'vitest'
import { formatSummary, summarizeTests } from './test-summary.ts'

function report(counts: { passed?: number; failed?: number; pending?: number; todo?: number }, files: object[] = []) {
  return JSON.stringify({
    numPassedTests: counts.passed ?? 0,
    numFailedTests: counts.failed ?? 0,
    numPendingTests: counts.pending ?? 0,
    numTodoTests: counts.todo ?? 0,
    testResults: files,
  })
}

describe('summarizeTests', () => {
  it('counts passed, failed, and skipped with those still to be written', () => {
    expect(summarizeTests(report({ passed: 7, pending: 2, todo: 1 }), 0)).toEqual({ passed: 7, failed: 0, skipped: 3 })
  })

  it('counts a failed test once, not again for its file', () => {
    const file = { status: 'failed', assertionResults: [{ status: 'passed' }, { status: 'failed' }] }
    expect(summarizeTests(report({ passed: 1, failed: 1 }, [file]), 1).failed).toBe(1)
  })

  it('counts a file that did not load as one failure', () => {
    const file = { status: 'failed', assertionResults: [] }
    expect(summarizeTests(report({ passed: 3 }, [file]), 1).failed).toBe(1)
  })

  it('never says that nothing failed when the runner failed', () => {
    expect(summarizeTests(report({ passed: 3 }), 1).failed).toBe(1)
  })
})

describe('formatSummary', () => {
  it('is one line in a fixed form', () => {
    expect(formatSummary({ passed: 1204, failed: 0, skipped: 2 })).toBe('1204 passed, 0 failed, 2 skipped')
  })
})
