import { startRedis } from '@sluice/testing/servers'
import type { Bench } from './bench.ts'
import type { BenchServer } from './http-servers.ts'
import { startScript } from './http-servers.ts'
import { medianOf } from './median.ts'
import { WrkScript } from './wrk.ts'

/**
 * Pairs of servers that are restarted: the random choices of the compiler in a process are worth up to a third of
 * its speed, and stays with that process.
 */
const STARTS = 5
/** Of each pair, one after the other: short, so that the machine is in the same mood for both. */
const ROUNDS = 4
const SECONDS = 1
/** A server of this kind is still being compiled for some seconds. */
const WARM_SECONDS = 4
const USERS = 200
/** The requests are made before the load, so that the load generator takes as little of the machine as possible. */
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

/** Two candidates that are compared, measured one right after the other. */
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

async function startWarm(wrk: WrkScript, { server: name, url }: Candidate): Promise<BenchServer> {
  const server = await startScript('middleware-child.ts', url === undefined ? [name] : [name, url])
  await wrk.saturate(server.url, WARM_SECONDS)
  return server
}

/** Requests a second of candidates, in every round of every start: all of them run, and are measured in turns. */
async function measure(wrk: WrkScript, candidates: readonly Candidate[]): Promise<readonly (readonly number[])[]> {
  const reached = candidates.map((): number[] => [])
  for (let start = 0; start < STARTS; start++) {
    const servers: BenchServer[] = []
    try {
      for (const candidate of candidates) servers.push(await startWarm(wrk, candidate))
      for (let round = 0; round < ROUNDS; round++) {
        // The second one may find the machine in another state: they take turns.
        const order = [...servers.keys()]
        for (const index of round % 2 === 0 ? order : order.toReversed()) {
          reached[index]!.push(await wrk.saturate(servers[index]!.url, SECONDS))
        }
      }
    } finally {
      await Promise.all(servers.map((server) => server.stop()))
    }
  }
  return reached
}

/** Requests a second through the middleware of the frameworks, against their usual rate limiters. */
export const middleware: Bench = {
  id: 'middleware',
  title: 'GET through Express and Fastify, against express-rate-limit and @fastify/rate-limit, in memory and on Redis',
  async run(progress) {
    await using redis = await startRedis()
    using wrk = new WrkScript(SCRIPT)
    const middles = new Map<string, number>()
    const ratios: Record<string, number> = {}
    const note = (candidate: Candidate, reached: readonly number[]): void => {
      middles.set(candidate.name, Math.round(medianOf(reached)))
      progress(`${candidate.name}: ${middles.get(candidate.name)!.toLocaleString('en')} requests/s`)
    }
    for (const { framework } of PAIRS) {
      const bare: Candidate = { name: `${framework}, no limit`, server: `${framework}, no limit`, url: undefined }
      note(bare, (await measure(wrk, [bare]))[0]!)
    }
    const comparisons = comparisonsOn(redis.url)
    for (const { name, ours, peer } of comparisons) {
      const [oursReached = [], peerReached = []] = await measure(wrk, [ours, peer])
      note(ours, oursReached)
      note(peer, peerReached)
      // Of each round, because the two were measured next to each other.
      ratios[name] = medianOf(oursReached.map((perSecond, round) => perSecond / peerReached[round]!))
    }
    return {
      id: 'middleware',
      results: [...middles].map(([name, opsPerSecond]) => ({ name, opsPerSecond })),
      ratios,
      floor: Object.fromEntries(comparisons.map(({ name, floor }) => [name, floor])),
      ok: comparisons.every(({ name, floor }) => ratios[name]! >= floor),
      notes: [
        `64 connections, ${USERS} callers identified by a header, none denied; client and server share the machine`,
      ],
    }
  },
}
