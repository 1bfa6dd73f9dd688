import { startRedis } from '@sluice/testing/servers'
import type { Bench } from './bench.ts'
import { startScript } from './http-servers.ts'
import { middleOf } from './middle.ts'
import { WrkScript } from './wrk.ts'

const ROUNDS = 7
/** A server of this kind is still being compiled for some seconds. */
const WARM_SECONDS = 3
const SECONDS = 3
const USERS = 200
/** The requests are made before the load, so that whoever makes it takes as little of the machine as can be. */
const SCRIPT = `
local count, requests = 0, {}
init = function()
  for user = 1, ${USERS} do
    wrk.headers['x-user'] = 'user-' .. user
    requests[user] = wrk.format()
  end
end
request = function()
  count = count % ${USERS} + 1
  return requests[count]
end
`

const PAIRS = [
  { framework: 'express', ours: 'express, sluice', peer: 'express, express-rate-limit' },
  { framework: 'fastify', ours: 'fastify, sluice', peer: 'fastify, @fastify/rate-limit' },
] as const

const FLOORS = { memory: 1, Redis: 1.3 } as const

/** Something to measure: a server, and where it counts. */
interface Candidate {
  readonly name: string
  readonly server: string
  readonly url: string | undefined
}

/** Two that are compared, which run one right after the other. */
interface Comparison {
  readonly name: string
  readonly ours: Candidate
  readonly peer: Candidate
  readonly floor: number
}

function comparisonsOn(redisUrl: string): readonly Comparison[] {
  const places = [
    { place: 'memory', url: undefined },
    { place: 'Redis', url: redisUrl },
  ] as const
  return PAIRS.flatMap(({ framework, ours, peer }) =>
    places.map(({ place, url }) => ({
      name: `${framework}, ${place}`,
      ours: { name: `${ours}, ${place}`, server: ours, url },
      peer: { name: `${peer}, ${place}`, server: peer, url },
      floor: FLOORS[place],
    })),
  )
}

async function measure(wrk: WrkScript, { server: name, url }: Candidate): Promise<number> {
  const server = await startScript('middleware-child.ts', url === undefined ? [name] : [name, url])
  try {
    await wrk.saturate(server.url, WARM_SECONDS)
    return await wrk.saturate(server.url, SECONDS)
  } finally {
    await server.stop()
  }
}

/** Requests a second through the middleware of the frameworks, against their usual rate limiters. */
export const middleware: Bench = {
  id: 'middleware',
  title: 'GET through Express and Fastify, against express-rate-limit and @fastify/rate-limit, in memory and on Redis',
  async run(progress) {
    await using redis = await startRedis()
    using wrk = new WrkScript(SCRIPT)
    const comparisons = comparisonsOn(redis.url)
    const bare = PAIRS.map(({ framework }) => `${framework}, no limit`).map((name) => ({
      name,
      server: name,
      url: undefined,
    }))
    const rounds = new Map<string, number[]>()
    for (let round = 1; round <= ROUNDS; round++) {
      // Whichever runs second may find the machine in another mood: they take turns in that.
      const pairs = comparisons.map(({ ours, peer }) => (round % 2 === 0 ? [peer, ours] : [ours, peer]))
      for (const candidate of [...bare, ...pairs.flat()]) {
        const perSecond = await measure(wrk, candidate)
        rounds.set(candidate.name, [...(rounds.get(candidate.name) ?? []), perSecond])
        const text = Math.round(perSecond).toLocaleString('en')
        progress(`round ${round} of ${ROUNDS}: ${candidate.name} ${text} requests/s`)
      }
    }
    // Of each round, because the two ran next to each other then.
    const ratioOf = ({ ours, peer }: Comparison): number =>
      middleOf(rounds.get(ours.name)!.map((perSecond, round) => perSecond / rounds.get(peer.name)![round]!))
    return {
      id: 'middleware',
      results: [...rounds].map(([name, values]) => ({ name, opsPerSecond: Math.round(middleOf(values)) })),
      ratios: Object.fromEntries(comparisons.map((comparison) => [comparison.name, ratioOf(comparison)])),
      floor: Object.fromEntries(comparisons.map(({ name, floor }) => [name, floor])),
      ok: comparisons.every((comparison) => ratioOf(comparison) >= comparison.floor),
      notes: [
        `64 connections, ${USERS} callers told apart by a header, nobody refused; client and server share the machine`,
      ],
    }
  },
}
