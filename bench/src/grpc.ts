import type { Bench } from './bench.ts'
import { H2Load } from './h2load.ts'
import { startGrpcService, startScript } from './http-servers.ts'
import { medianOf } from './median.ts'

const ROUNDS = 5
const SECONDS = 4
const FLOOR = 0.8
/** Share of its saturation that latencies are measured at. */
const CALM = 0.1

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
      return {
        id: 'grpc',
        results: [
          { name: 'service', opsPerSecond: Math.round(service), p50Ms: calm.p50Ms, p99Ms: calm.p99Ms },
          { name: 'bare node:http2 echo', opsPerSecond: Math.round(echo) },
        ],
        ratios: { 'to the bare server': service / echo },
        floor: { 'to the bare server': FLOOR },
        ok: service / echo >= FLOOR,
        notes: [
          `latencies at a constant ${Math.round(service * CALM).toLocaleString('en')} calls/s`,
          'client and server share two hardware threads',
        ],
      }
    } finally {
      await Promise.all(Object.values(servers).map((server) => server.stop()))
    }
  },
}
