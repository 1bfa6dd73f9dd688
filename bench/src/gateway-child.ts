import { createHash } from 'node:crypto'
import { Agent, createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import httpProxy from '@fastify/http-proxy'
import rateLimit from '@fastify/rate-limit'
import { memoryStore, systemClock, systemRandom, systemTimers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import { PolicyEngine } from '@sluice/core/policy'
import { CredentialIdentifier, compileGateway, createGateway, createUpstream } from '@sluice/gateway'
import { Logger, LogOutput, MetricRegistry, SnowflakeGenerator, systemNowMs } from '@sluice/runtime'
import { redisStore } from '@sluice/store-redis'
import fastify from 'fastify'
import { createProxyServer } from 'http-proxy-3'

// One of the servers of the gateway bench. Prints where it listens.

/** What a server of the gateway bench is started with. */
export interface GatewayBenchOrder {
  readonly kind: 'upstream' | 'gateway' | 'fastify' | 'http-proxy-3'
  /** Origin of the upstream. */
  readonly upstream: string
  /** Whether the gateway has limits. */
  readonly isLimited: boolean
  readonly routes: number
  readonly keys: readonly string[]
  readonly redisUrl?: string
}

const ENOUGH = 1_000_000_000

const order = JSON.parse(process.argv[2]!) as GatewayBenchOrder

switch (order.kind) {
  case 'upstream':
    await say(listen(createServer((_request, response) => answer(response))))
    break
  case 'gateway':
    await startGateway(order)
    break
  case 'fastify':
    await startFastify(order)
    break
  case 'http-proxy-3':
    await startHttpProxy(order)
    break
}
process.on('SIGTERM', () => process.exit(0))

function answer(response: import('node:http').ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '11' })
  response.end('{"ok":true}')
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

async function say(port: number | Promise<number>): Promise<void> {
  console.log(`http://127.0.0.1:${await port}`)
}

/** The gateway as the service runs it: routing, verified keys, metrics, and three limits decided at once. */
async function startGateway({ upstream, isLimited, routes, keys, redisUrl }: GatewayBenchOrder): Promise<void> {
  // main.ts of the service does so too.
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000')
  setFlagsFromString('--no-allocation-site-pretenuring')
  const config = compileGateway(
    {
      gateway: {
        consumers: keys.map((key, index) => ({
          name: `user-${index}`,
          keys: [`sha256:${createHash('sha256').update(key).digest('hex')}`],
        })),
      },
      routes: Array.from({ length: routes }, (_, index) => ({
        name: `route-${index}`,
        match: { path: `/service-${index}/*` },
        upstream: 'app',
        auth: 'required',
        ...(isLimited ? {} : { limits: 'off' as const }),
      })),
      upstreams: { app: { instances: [{ url: upstream }] } },
    },
    { folder: process.cwd() },
  )
  const store =
    redisUrl === undefined ? memoryStore() : redisStore(redisUrl, { deadlineMs: 1000, failureMode: 'closed' })
  const dimensions = ['user', 'ip', 'global'] as const
  const engine = new PolicyEngine({
    store,
    ruleSet: { rules: dimensions.map((dimension) => ({ resource: '*', dimension, limit: ENOUGH, window: '1m' })) },
  })
  const ids = new SnowflakeGenerator({ nowMs: systemNowMs, machine: 1, datacenter: 1 })
  const parts = { clock: systemClock, random: systemRandom, timers: systemTimers }
  const gateway = createGateway({
    ...parts,
    config,
    listen: { host: '127.0.0.1', port: 0 },
    engine,
    identifier: new CredentialIdentifier(config.options, parts),
    createUpstream: (name, upstreamConfig) => createUpstream(name, upstreamConfig),
    metrics: new MetricRegistry(),
    logger: new Logger(new LogOutput({ stream: process.stderr, nowMs: systemNowMs })),
    newRequestId: () => ids.nextString(),
    monotonicMs: systemMonotonicMs,
  })
  await gateway.start()
  await say(gateway.port!)
}

async function startFastify({ upstream, isLimited }: GatewayBenchOrder): Promise<void> {
  const app = fastify()
  if (isLimited) {
    await app.register(rateLimit, {
      max: ENOUGH,
      timeWindow: '1 minute',
      keyGenerator: (request) => String(request.headers['x-api-key']),
    })
  }
  await app.register(httpProxy, { upstream })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  await say(Number(new URL(url).port))
}

async function startHttpProxy({ upstream }: GatewayBenchOrder): Promise<void> {
  const proxy = createProxyServer({ target: upstream, agent: new Agent({ keepAlive: true }) })
  await say(listen(createServer((request, response) => void proxy.web(request, response))))
}
