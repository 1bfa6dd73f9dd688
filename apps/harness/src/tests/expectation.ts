import type { TestResult } from './test-result.ts'

/** Every count that is not exactly what the limit says, one sentence each; none when the limit held. */
export function wrongCounts({ algorithm, maxRequests, race, accuracy, distributed }: TestResult): string[] {
  const counts: [what: string, requests: number, approved: number][] = [
    ['RaceTest', race.attempts, race.approved],
    ['AccuracyTest', accuracy.requests, accuracy.approved],
  ]
  if (accuracy.approvedAfterReset !== null) {
    counts.push(['AccuracyTest after the reset', accuracy.requests, accuracy.approvedAfterReset])
  }
  for (let node = 0; node < distributed.nodes; node++) {
    const approved = distributed.approvedPerNode[node] ?? 0
    counts.push([`DistributedTest at node ${node + 1}`, distributed.requestsPerNode, approved])
  }
  return counts
    .filter(([, requests, approved]) => approved !== Math.min(requests, maxRequests))
    .map(([what, requests, approved]) => {
      const expected = Math.min(requests, maxRequests)
      return `${algorithm}, MaxRequests = ${maxRequests}: ${what} approved ${approved} of ${requests}, expected exactly ${expected}.`
    })
}
