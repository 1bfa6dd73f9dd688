import type { TestResult } from './tests/admission-tests.ts'
import { wrongCounts } from './tests/admission-tests.ts'

/**
 * The section of one algorithm, without a line end. The counts are bounds here; {@link reportJson} has the real ones.
 */
export function reportText(algorithm: string, results: readonly TestResult[]): string {
  return [`Algorithm: ${algorithm}\n-----`, ...results.map(blockText)].join('\n\n')
}

function blockText({ maxRequests, race, accuracy, distributed }: TestResult): string {
  return [
    `MaxRequests = ${maxRequests}`,
    `RaceTest: Approved <= ${maxRequests} | Time=${timeText(race.ms)}`,
    `AccuracyTest: Approved <= ${maxRequests} | Requests=${accuracy.requests} | Time=${timeText(accuracy.ms)}`,
    `DistributedTest: Nodes=${distributed.nodes}, Req/Node=${distributed.requestsPerNode} | ` +
      `Time=${timeText(distributed.ms)}`,
  ].join('\n')
}

/** How many of the blocks have exact counts. */
export function summaryText(results: readonly TestResult[]): string {
  const exact = results.filter((result) => wrongCounts(result).length === 0)
  return `${exact.length} of ${results.length} exact`
}

function timeText(ms: number): string {
  return `${Math.round(ms)}ms`
}

/** All results as a JSON array, one line for each result. */
export function reportJson(results: readonly TestResult[]): string {
  return `[\n${results.map((result) => `  ${JSON.stringify(result)}`).join(',\n')}\n]`
}
