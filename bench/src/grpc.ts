import { FaultyProxy, startRedis } from '@sluice/testing/servers'
import type { Bench } from './bench.ts'
import type { Loaded } from './h2load.ts'
import { H2Load } from './h2load.ts'
import { startGrpcService, startScript } from './http-servers.ts'
import { medianOf } from './median.ts'

const ROUNDS = 5
const SECONDS = 4
const FLOOR = 0.8
/** Share of its saturation that latencies are measured at. */
const CALM = 0.1

/** Longer than the deadline of a call and shorter than that of the store, so that its breaker stays closed. */
const SLOW_STORE_MS = 30
const SLOW_PER_SECOND = 400

/** RateLimitRequest: domain `bench`, one descriptor with the entry `user`=`user-1`. */
const REQUEST: Buffer = Buffer.from('0a0562656e636812100a0e0a04757365721206757365722d31', 'hex')

/** The gRPC listener against a server that does nothing but frame what it reads. */
export const grpc: Bench = {
  id: 'grpc',
  title: 'ShouldRateLimit of Envoy against a bare node:http2 server that echoes messages',
  async run(progress) {
    using load = new H2Load(REQUEST)
    const servers = { echo: await startScript('grpc-echo-child.ts', []), service: await startGrpcService() }
    try {
      const reached = { echo: [] as number[], service: [] as number[] }
      for (const server of Object.values(servers)) await load.run(server.url, SECONDS)
      for (let round = 1; round <= ROUNDS; round++) {
        for (const name of ['service', 'echo'] as const) {
          const { perSecond } = await load.run(servers[name].url, SECONDS)
          reached[name].push(perSecond)
          progress(`round ${round} of ${ROUNDS}: ${name} ${Math.round(perSecond).toLocaleString('en')} calls/s`)
        }
      }
      const [service, echo] = [medianOf(reached.service), medianOf(reached.echo)]
      const calm = await load.run(servers.service.url, SECONDS, service * CALM)
      const slow = await runWithSlowStore(load)
      return {
        id: 'grpc',
        results: [
          { name: 'service', opsPerSecond: Math.round(service), p50Ms: calm.p50Ms, p99Ms: calm.p99Ms },
          { name: 'bare node:http2 echo', opsPerSecond: Math.round(echo) },
          { name: `service, Redis takes ${SLOW_STORE_MS} ms`, p50Ms: slow.p50Ms, p99Ms: slow.p99Ms },
        ],
        ratios: { 'to the bare server': service / echo },
        floor: { 'to the bare server': FLOOR },
        ok: service / echo >= FLOOR,
        notes: [
          `latencies at a constant ${Math.round(service * CALM).toLocaleString('en')} calls/s`,
          `with the slow Redis at ${SLOW_PER_SECOND} calls/s: the failure mode answers after 15 ms, Envoy waits 20 ms`,
          'client and server share two hardware threads',
        ],
      }
    } finally {
      await Promise.all(Object.values(servers).map((server) => server.stop()))
    }
  },
}

/** Calls to a service whose Redis answers too late for Envoy. */
async function runWithSlowStore(load: H2Load): Promise<Loaded> {
  await using redis = await startRedis()
  const proxy = await FaultyProxy.start({ port: redis.port })
  const service = await startGrpcService(`redis://127.0.0.1:${proxy.port}`)
  try {
    await load.run(service.url, 1, SLOW_PER_SECOND)
    proxy.delay(SLOW_STORE_MS)
    return await load.run(service.url, SECONDS, SLOW_PER_SECOND)
  } finally {
    await service.stop()
    await proxy.close()
  }
}
