import { startRedis } from '@sluice/testing/servers'
import type { Bench } from './bench.ts'
import { outcomeOf, redisResults, redisRounds, timesAsLong } from './redis-rounds.ts'

const COUNTS = [1, 3, 5, 10]
const MOST_TIMES_AS_LONG = 2

function nameOf(limits: number): string {
  return limits === 1 ? '1 limit' : `${limits} limits`
}

/** What several limits in one check cost. */
export const redisLimits: Bench = {
  id: 'redis-limits',
  title: '1, 3, 5 and 10 limits in one check, 10,000 keys, one Redis',
  async run(progress) {
    await using server = await startRedis()
    const loads = COUNTS.map((limits) => ({
      name: nameOf(limits),
      candidate: 'sluice',
      callers: 256,
      keys: 10_000,
      limits,
    }))
    const outcomes = await redisRounds(server, loads, progress)
    const timeOf = (limits: number): number =>
      timesAsLong(outcomeOf(outcomes, nameOf(limits)), outcomeOf(outcomes, nameOf(1)))
    return {
      id: 'redis-limits',
      results: redisResults(outcomes),
      ratios: Object.fromEntries(COUNTS.slice(1).map((limits) => [`time of ${nameOf(limits)}`, timeOf(limits)])),
      floor: { 'time of 10 limits': MOST_TIMES_AS_LONG },
      ok: timeOf(10) <= MOST_TIMES_AS_LONG,
      notes: ['the floor is the most: 10 limits may take twice the time of 1'],
    }
  },
}
