import { startRedis } from '@sluice/testing/servers'
import type { Bench } from './bench.ts'
import { startScript } from './http-servers.ts'
import { WrkScript } from './wrk.ts'

const ROUNDS = 5
const WARM_SECONDS = 2
const SECONDS = 4
const USERS = 200
const SCRIPT = `
local count = 0
request = function()
  count = (count + 1) % ${USERS}
  wrk.headers['x-user'] = 'user-' .. count
  return wrk.format()
end
`
const MEMORY_FLOOR = 1
const REDIS_FLOOR = 1.3

const PAIRS = [
  { framework: 'express', ours: 'express, sluice', peer: 'express, express-rate-limit' },
  { framework: 'fastify', ours: 'fastify, sluice', peer: 'fastify, @fastify/rate-limit' },
] as const

function middleOf(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** Requests a second through the middleware of the frameworks, against their usual rate limiters. */
export const middleware: Bench = {
  id: 'middleware',
  title: 'GET through Express and Fastify, against express-rate-limit and @fastify/rate-limit, in memory and on Redis',
  async run(progress) {
    await using redis = await startRedis()
    using wrk = new WrkScript(SCRIPT)
    const candidates = PAIRS.flatMap(({ framework, ours, peer }) =>
      [`${framework}, no limit`, ours, peer].flatMap((candidate) =>
        candidate.endsWith('no limit')
          ? [{ name: candidate, candidate, url: undefined }]
          : [
              { name: `${candidate}, memory`, candidate, url: undefined },
              { name: `${candidate}, Redis`, candidate, url: redis.url },
            ],
      ),
    )
    const rounds = new Map<string, number[]>(candidates.map(({ name }) => [name, []]))
    for (let round = 1; round <= ROUNDS; round++) {
      for (const { name, candidate, url } of candidates) {
        const server = await startScript('middleware-child.ts', url === undefined ? [candidate] : [candidate, url])
        try {
          await wrk.saturate(server.url, WARM_SECONDS)
          const perSecond = await wrk.saturate(server.url, SECONDS)
          rounds.get(name)!.push(perSecond)
          progress(`round ${round} of ${ROUNDS}: ${name} ${Math.round(perSecond).toLocaleString('en')} requests/s`)
        } finally {
          await server.stop()
        }
      }
    }
    const ratios: Record<string, number> = {}
    const floor: Record<string, number> = {}
    for (const { framework, ours, peer } of PAIRS) {
      for (const [place, least] of [
        ['memory', MEMORY_FLOOR],
        ['Redis', REDIS_FLOOR],
      ] as const) {
        // Of each round, because the two ran next to each other then.
        const theirs = rounds.get(`${peer}, ${place}`)!
        ratios[`${framework}, ${place}`] = middleOf(
          rounds.get(`${ours}, ${place}`)!.map((perSecond, round) => perSecond / theirs[round]!),
        )
        floor[`${framework}, ${place}`] = least
      }
    }
    return {
      id: 'middleware',
      results: candidates.map(({ name }) => ({ name, opsPerSecond: Math.round(middleOf(rounds.get(name)!)) })),
      ratios,
      floor,
      ok: Object.entries(ratios).every(([name, ratio]) => ratio >= floor[name]!),
      notes: [
        `64 connections, ${USERS} callers told apart by a header, nobody refused; client and server share the machine`,
      ],
    }
  },
}
