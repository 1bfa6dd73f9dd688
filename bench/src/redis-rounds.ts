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

/** What a load reached in the middle one of its rounds. */
export interface RedisOutcome extends BenchResult {
  readonly opsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Calls a second in each round. */
  readonly rounds: readonly number[]
}

const ROUNDS = 5
const WARM_MS = 1500
const RUN_MS = 2000

/**
 * Runs every load in a process of its own, round after round, so that a noisy moment does not hit one of them alone,
 * each on a server without data. Of each the middle round counts, by calls a second, with the latencies of that round:
 * with two processes that wait for each other, a lucky round says as little as an unlucky one.
 */
export async function redisRounds(
  server: RedisServer,
  loads: readonly RedisLoad[],
  progress: (line: string) => void,
): Promise<ReadonlyMap<string, RedisOutcome>> {
  const rounds = new Map<string, RedisOutcome[]>(loads.map(({ name }) => [name, []]))
  for (let round = 1; round <= ROUNDS; round++) {
    for (const { name, ...load } of loads) {
      await server.command('FLUSHALL')
      const setting = JSON.stringify({ ...load, url: server.url, warmMs: WARM_MS, runMs: RUN_MS })
      const measured = await runChild<Omit<RedisOutcome, 'name' | 'rounds'>>('redis-child.ts', [setting])
      const outcome = { name, rounds: [], ...measured }
      rounds.get(name)!.push(outcome)
      progress(
        `round ${round} of ${ROUNDS}: ${name} ${Math.round(outcome.opsPerSecond).toLocaleString('en')} calls/s, ` +
          `p50 ${outcome.p50Ms.toFixed(2)} ms, p99 ${outcome.p99Ms.toFixed(2)} ms`,
      )
    }
  }
  return new Map([...rounds].map(([name, outcomes]) => [name, medianOf(outcomes)]))
}

function medianOf(outcomes: readonly RedisOutcome[]): RedisOutcome {
  const sorted = outcomes.toSorted((one, other) => one.opsPerSecond - other.opsPerSecond)
  return { ...sorted[Math.floor(sorted.length / 2)]!, rounds: outcomes.map(({ opsPerSecond }) => opsPerSecond) }
}

/**
 * How many times as long a call of one load takes as one of another: the middle one of all rounds, in each of which the
 * two ran next to each other. On a machine whose speed changes from minute to minute this says more than the middle of
 * each.
 */
export function timesAsLong(load: RedisOutcome, other: RedisOutcome): number {
  const ratios = load.rounds.map((opsPerSecond, round) => other.rounds[round]! / opsPerSecond)
  return ratios.toSorted((one, another) => one - another)[Math.floor(ratios.length / 2)] ?? Number.NaN
}

/** The outcome of a load that was run. */
export function outcomeOf(outcomes: ReadonlyMap<string, RedisOutcome>, name: string): RedisOutcome {
  const outcome = outcomes.get(name)
  if (outcome === undefined) throw new Error(`no load is called ${name}`)
  return outcome
}

/** Outcomes as a report shows them. */
export function redisResults(outcomes: ReadonlyMap<string, RedisOutcome>): BenchResult[] {
  return [...outcomes.values()].map((outcome) => ({
    name: outcome.name,
    opsPerSecond: Math.round(outcome.opsPerSecond),
    p50Ms: Math.round(outcome.p50Ms * 100) / 100,
    p99Ms: Math.round(outcome.p99Ms * 100) / 100,
  }))
}
