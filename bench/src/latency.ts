import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import type { Bench, BenchResult } from './bench.ts'
import { runChild } from './child.ts'
import { CHECK_SCRIPT } from './http-check.ts'
import type { BenchServer } from './http-servers.ts'
import { startEcho, startScript, startService } from './http-servers.ts'
import type { LatencyOutcome } from './latency-child.ts'
import { medianOf } from './median.ts'
import { WrkScript } from './wrk.ts'

const BLOCKS = 25
const CALLS = 400
const CONNECTIONS = 24
const CALLS_PER_CONNECTION = 100
const HTTP_ROUNDS = 9
const HTTP_SECONDS = 1
const WARM_SECONDS = 4
const HTTP_CONNECTIONS = 2
const USERS_WITH_4_WINDOWS = 100_000

const INCR = 'INCR, ioredis'
const PEER = 'rate-limiter-flexible, ioredis'
const OURS = 'sluice by URL'
const REPORTED = ['sluice, ioredis', `${OURS}, 3 limits`, `${OURS}, rule set`, `${OURS}, leases`]

const CEILING = {
  'p50 to rate-limiter-flexible': 1,
  'p50 to INCR': 1.3,
  'client CPU to rate-limiter-flexible': 1.1,
  'Redis CPU to rate-limiter-flexible, 24 connections': 1,
  'service in memory, p50 to the bare echo': 1.4,
  'service on Redis, p50 to the bare echo + 1.6 INCR': 1,
} as const

const FRAMEWORKS = [
  { name: 'express, requests/s to express-rate-limit', ours: 'express, sluice', peer: 'express, express-rate-limit' },
  { name: 'fastify, requests/s to @fastify/rate-limit', ours: 'fastify, sluice', peer: 'fastify, @fastify/rate-limit' },
] as const

/** GET requests of one user after the other, as the middleware servers expect them. */
const GET_SCRIPT = `
local count = 0
request = function()
  count = count % 200 + 1
  wrk.headers['x-user'] = 'user-' .. count
  return wrk.format()
end
`

type Figure = 'p50Micros' | 'clientMicros' | 'serverMicros'

/** The median over all blocks of the ratio within a block, in which both ran next to each other. */
function ratioOf(ours: LatencyOutcome, other: LatencyOutcome, figure: Figure): number {
  return medianOf(ours[figure].map((value, block) => value / other[figure][block]!))
}

function resultOf(outcome: LatencyOutcome, suffix = ''): BenchResult {
  return {
    name: `${outcome.name}${suffix}`,
    opsPerSecond: Math.round(medianOf(outcome.callsPerSecond)),
    p50Ms: Math.round(medianOf(outcome.p50Micros)) / 1000,
    clientMicros: Math.round(medianOf(outcome.clientMicros)),
    serverMicros: Math.round(medianOf(outcome.serverMicros) * 10) / 10,
  }
}

interface Calls {
  readonly names: readonly string[]
  readonly connections: number
  readonly calls: number
}

/** Runs blocks of calls in one process. */
async function callsOn(redis: RedisServer, calls: Calls): Promise<(name: string) => LatencyOutcome> {
  await redis.command('FLUSHALL')
  const setting = JSON.stringify({ url: redis.url, blocks: BLOCKS, ...calls })
  const outcomes = await runChild<readonly LatencyOutcome[]>('latency-child.ts', [setting])
  return (name) => outcomes.find((outcome) => outcome.name === name)!
}

/** Median latencies, in milliseconds, and requests per second of servers at two connections, in each round. */
interface ServerRounds {
  readonly p50Ms: number[]
  readonly perSecond: number[]
}

/** Asks servers in turn, each over two connections. */
async function askInTurns(wrk: WrkScript, servers: readonly BenchServer[]): Promise<readonly ServerRounds[]> {
  for (const { url } of servers) await wrk.press({ url, seconds: WARM_SECONDS, connections: HTTP_CONNECTIONS })
  const rounds = servers.map((): ServerRounds => ({ p50Ms: [], perSecond: [] }))
  for (let round = 0; round < HTTP_ROUNDS; round++) {
    const order = [...servers.keys()]
    for (const index of round % 2 === 0 ? order : order.toReversed()) {
      const { url } = servers[index]!
      const pressed = await wrk.press({ url, seconds: HTTP_SECONDS, connections: HTTP_CONNECTIONS })
      if (pressed.refused > 0) throw new Error(`${pressed.refused} requests were not answered with 200`)
      rounds[index]!.p50Ms.push(pressed.p50Ms)
      rounds[index]!.perSecond.push(pressed.goodPerSecond)
    }
  }
  return rounds
}

function httpResult(name: string, { p50Ms, perSecond }: ServerRounds): BenchResult {
  return { name, opsPerSecond: Math.round(medianOf(perSecond)), p50Ms: Math.round(medianOf(p50Ms) * 1000) / 1000 }
}

/** The service at two connections, against a bare server. */
async function measureService(redis: RedisServer): Promise<readonly [ServerRounds, ServerRounds, ServerRounds]> {
  using wrk = new WrkScript(CHECK_SCRIPT)
  const servers = [await startEcho(), await startService(), await startService({ redisUrl: redis.url })]
  try {
    return (await askInTurns(wrk, servers)) as [ServerRounds, ServerRounds, ServerRounds]
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
}

/** A framework with our middleware and with its peer, on Redis, at two connections. */
async function measureFramework(
  redis: RedisServer,
  { ours, peer }: (typeof FRAMEWORKS)[number],
): Promise<readonly [ServerRounds, ServerRounds]> {
  using wrk = new WrkScript(GET_SCRIPT)
  const start = (name: string): Promise<BenchServer> => startScript('middleware-child.ts', [name, redis.url])
  const servers = [await start(ours), await start(peer)]
  try {
    return (await askInTurns(wrk, servers)) as [ServerRounds, ServerRounds]
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
}

/** Bytes that Redis needs for a user with four windows. */
async function bytesPerUser(redis: RedisServer): Promise<number> {
  await redis.command('FLUSHALL')
  const setting = JSON.stringify({ url: redis.url, users: USERS_WITH_4_WINDOWS })
  const { bytes } = await runChild<{ bytes: number }>('redis-bytes-child.ts', [setting])
  return Math.round(bytes / USERS_WITH_4_WINDOWS)
}

/** One call at a time: what a process without much traffic sees. */
export const latency: Bench = {
  id: 'latency',
  title: 'one check at a time, on Redis, through the service and through middleware',
  async run(progress) {
    await using redis = await startRedis()
    const alone = await callsOn(redis, { names: [INCR, PEER, OURS, ...REPORTED], connections: 1, calls: CALLS })
    progress(`${OURS}: p50 ${medianOf(alone(OURS).p50Micros).toFixed(0)} us`)
    const many = await callsOn(redis, { names: [PEER, OURS], connections: CONNECTIONS, calls: CALLS_PER_CONNECTION })
    progress(`${OURS}, 24 connections: ${medianOf(many(OURS).serverMicros).toFixed(1)} us of Redis CPU per check`)
    const [echo, inMemory, onRedis] = await measureService(redis)
    progress(`service: p50 ${medianOf(inMemory.p50Ms)} ms in memory, ${medianOf(onRedis.p50Ms)} ms on Redis`)
    const incrMs = medianOf(alone(INCR).p50Micros) / 1000
    const ratios: Record<string, number> = {
      'p50 to rate-limiter-flexible': ratioOf(alone(OURS), alone(PEER), 'p50Micros'),
      'p50 to INCR': ratioOf(alone(OURS), alone(INCR), 'p50Micros'),
      'client CPU to rate-limiter-flexible': ratioOf(alone(OURS), alone(PEER), 'clientMicros'),
      'Redis CPU to rate-limiter-flexible, 24 connections': ratioOf(many(OURS), many(PEER), 'serverMicros'),
      'service in memory, p50 to the bare echo': medianOf(inMemory.p50Ms.map((ms, round) => ms / echo.p50Ms[round]!)),
      'service on Redis, p50 to the bare echo + 1.6 INCR': medianOf(
        onRedis.p50Ms.map((ms, round) => ms / (echo.p50Ms[round]! + 1.6 * incrMs)),
      ),
    }
    const results = [
      ...[INCR, PEER, OURS, ...REPORTED].map((name) => resultOf(alone(name))),
      ...[PEER, OURS].map((name) => resultOf(many(name), ', 24 connections')),
      httpResult('bare node:http echo', echo),
      httpResult('service in memory', inMemory),
      httpResult('service on Redis', onRedis),
    ]
    for (const pair of FRAMEWORKS) {
      const [ours, peer] = await measureFramework(redis, pair)
      ratios[pair.name] = medianOf(ours.perSecond.map((value, round) => value / peer.perSecond[round]!))
      results.push(httpResult(pair.ours, ours), httpResult(pair.peer, peer))
      progress(`${pair.name}: ${ratios[pair.name]!.toFixed(2)}`)
    }
    results.push({ name: 'Redis, a user with 4 windows', bytesPerKey: await bytesPerUser(redis) })
    const floor = Object.fromEntries(FRAMEWORKS.map(({ name }) => [name, 1]))
    return {
      id: 'latency',
      results,
      ratios,
      floor,
      ceiling: CEILING,
      ok:
        Object.entries(CEILING).every(([name, most]) => ratios[name]! <= most) &&
        Object.entries(floor).every(([name, least]) => ratios[name]! >= least),
      notes: [
        `${BLOCKS} alternating blocks of ${CALLS} calls in one process; a ratio is the median of the ratios of all ` +
          'blocks',
        'service, Express and Fastify: 2 connections of wrk, on Redis unless stated otherwise',
      ],
    }
  },
}
