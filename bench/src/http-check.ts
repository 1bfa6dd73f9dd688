import type { Bench } from './bench.ts'
import { runChild } from './child.ts'
import { startEcho, startService } from './http-servers.ts'
import { medianOf } from './median.ts'
import { WrkScript } from './wrk.ts'

const ROUNDS = 5
const SECONDS = 4
const CONNECTIONS = 64
const FLOOR = 0.7
/** Share of its saturation that latencies are measured at. */
const CALM = 0.1
const USERS = 1000

/** Checks of many callers, for wrk. */
export const CHECK_SCRIPT: string = `
local body = '{"userId":"user-%d","resource":"/api/v1/data","method":"GET","clientIp":"192.0.2.1"}'
local count = 0
wrk.method = 'POST'
wrk.headers['Content-Type'] = 'application/json'
request = function()
  count = (count + 1) % ${USERS}
  return wrk.format(nil, nil, nil, string.format(body, count))
end
`

interface Latency {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly errors: number
}

/** The check API against a server that does nothing but read and write JSON. */
export const httpCheck: Bench = {
  id: 'http-check',
  title: 'POST /internal/ratelimit/check against a bare node:http server that echoes JSON',
  async run(progress) {
    using wrk = new WrkScript(CHECK_SCRIPT)
    const servers = { echo: await startEcho(), service: await startService() }
    try {
      const reached = { echo: [] as number[], service: [] as number[] }
      for (const server of Object.values(servers)) await wrk.saturate(server.url, SECONDS)
      for (let round = 1; round <= ROUNDS; round++) {
        for (const name of ['service', 'echo'] as const) {
          const perSecond = await wrk.saturate(servers[name].url, SECONDS)
          reached[name].push(perSecond)
          progress(`round ${round} of ${ROUNDS}: ${name} ${Math.round(perSecond).toLocaleString('en')} requests/s`)
        }
      }
      const [service, echo] = [medianOf(reached.service), medianOf(reached.echo)]
      const perSecond = Math.round(service * CALM)
      const order = { url: servers.service.url, perSecond, seconds: 10, connections: CONNECTIONS, users: USERS }
      const calm = await runChild<Latency>('http-load-child.ts', [JSON.stringify(order)])
      return {
        id: 'http-check',
        results: [
          { name: 'service', opsPerSecond: Math.round(service), p50Ms: calm.p50Ms, p99Ms: calm.p99Ms },
          { name: 'bare node:http echo', opsPerSecond: Math.round(echo) },
        ],
        ratios: { 'to the bare server': service / echo },
        floor: { 'to the bare server': FLOOR },
        ok: service / echo >= FLOOR && calm.errors === 0,
        notes: [
          `latencies at a constant ${perSecond.toLocaleString('en')} requests/s, from when each was due; p99.9 ` +
            `${calm.p999Ms} ms, ${calm.errors} errors`,
          'client and server share two hardware threads',
        ],
      }
    } finally {
      await Promise.all(Object.values(servers).map((server) => server.stop()))
    }
  },
}
