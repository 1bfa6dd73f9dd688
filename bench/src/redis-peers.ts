import { startRedis } from '@sluice/testing/servers'
import type { Bench } from './bench.ts'
import { outcomeOf, redisResults, redisRounds } from './redis-rounds.ts'

const CALLERS = 256
const OURS = 'sluice'
const PEERS = ['rate-limiter-flexible, node-redis', 'rate-limiter-flexible, ioredis']

/** Loads one Redis through Sluice and through its peer, which is taken at its best of two clients. */
function againstPeers(id: string, title: string, { keys, floor }: { keys: number; floor: number }): Bench {
  return {
    id,
    title,
    async run(progress) {
      await using server = await startRedis()
      const loads = [OURS, ...PEERS].map((name) => ({ name, candidate: name, callers: CALLERS, keys, limits: 1 }))
      const outcomes = await redisRounds(server, loads, progress)
      const ours = outcomeOf(outcomes, OURS)
      const peer = PEERS.map((name) => outcomeOf(outcomes, name)).reduce((one, other) =>
        other.opsPerSecond > one.opsPerSecond ? other : one,
      )
      const ratio = ours.opsPerSecond / peer.opsPerSecond
      return {
        id,
        results: redisResults(outcomes),
        ratios: { 'rate-limiter-flexible': ratio, 'p99 of rate-limiter-flexible': peer.p99Ms / ours.p99Ms },
        floor: { 'rate-limiter-flexible': floor, 'p99 of rate-limiter-flexible': 1 },
        ok: ratio >= floor && peer.p99Ms > ours.p99Ms,
        notes: [`${CALLERS} callers, each asking again when answered; the peer is ${peer.name}, the faster of the two`],
      }
    },
  }
}

/** Calls a second over many keys. */
export const redisKeys: Bench = againstPeers('redis-keys', '256 callers, 10,000 keys, one Redis', {
  keys: 10_000,
  floor: 2.5,
})

/** Calls a second on one key. */
export const redisHot: Bench = againstPeers('redis-hot', '256 callers, one key, one Redis', { keys: 1, floor: 8 })
