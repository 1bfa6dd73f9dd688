import type { RedisServer } from '@sluice/testing/servers'
import type { BenchResult } from './bench.ts'
import { runChild } from './child.ts'

/** One way to load a Redis. */
export interface RedisLoad {
  /** What it is called in the report. */
  readonly name: string
  readonly candidate: string
  readonly callers: number
  readonly keys: number
  readonly limits: number
}

/** What a load reached in its best round. */
export interface RedisOutcome extends BenchResult {
  readonly opsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

const ROUNDS = 5
const WARM_MS = 700
const RUN_MS = 1500

/**
 * Runs every load in a process of its own, round after round, so that a noisy moment does not hit one of them alone, each on
 * a server without data. Of each the round with the most calls counts, with the latencies of that round.
 */
export async function redisRounds(
  server: RedisServer,
  loads: readonly RedisLoad[],
  progress: (line: string) => void,
): Promise<ReadonlyMap<string, RedisOutcome>> {
  const best = new Map<string, RedisOutcome>()
  for (let round = 1; round <= ROUNDS; round++) {
    for (const { name, ...load } of loads) {
      await server.command('FLUSHALL')
      const setting = JSON.stringify({ ...load, url: server.url, warmMs: WARM_MS, runMs: RUN_MS })
      const outcome = { name, ...(await runChild<Omit<RedisOutcome, 'name'>>('redis-child.ts', [setting])) }
      const known = best.get(name)
      if (known === undefined || outcome.opsPerSecond > known.opsPerSecond) best.set(name, outcome)
      progress(
        `round ${round} of ${ROUNDS}: ${name} ${Math.round(outcome.opsPerSecond).toLocaleString('en')} calls/s, ` +
          `p50 ${outcome.p50Ms.toFixed(2)} ms, p99 ${outcome.p99Ms.toFixed(2)} ms`,
      )
    }
  }
  return best
}

/** The outcome of a load that was run. */
export function outcomeOf(best: ReadonlyMap<string, RedisOutcome>, name: string): RedisOutcome {
  const outcome = best.get(name)
  if (outcome === undefined) throw new Error(`no load is called ${name}`)
  return outcome
}

/** Outcomes as a report shows them. */
export function redisResults(best: ReadonlyMap<string, RedisOutcome>): BenchResult[] {
  return [...best.values()].map((outcome) => ({
    name: outcome.name,
    opsPerSecond: Math.round(outcome.opsPerSecond),
    p50Ms: Math.round(outcome.p50Ms * 100) / 100,
    p99Ms: Math.round(outcome.p99Ms * 100) / 100,
  }))
}
