import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemClock, systemRandom, systemTimers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import { PolicyEngine } from '@sluice/core/policy'
import { Logger, LogOutput, MetricRegistry, systemNowMs } from '@sluice/runtime'
import { redisStore } from '@sluice/store-redis'
import { compileGateway } from '../config/compile-gateway.ts'
import { createGateway } from '../gateway.ts'
import { CredentialIdentifier } from '../identity/identifier.ts'
import { createUpstream } from '../upstreams/create-upstream.ts'
import type { NodeMessage, NodeOrder } from './node.test.support.ts'

// One process of a fault test: an upstream that reports what it receives, or a gateway on Redis.

const order = JSON.parse(process.argv[2]!) as NodeOrder

if (order.kind === 'upstream') startUpstream(order.delayMs)
else await startGateway(order)

// The parent process is gone.
process.on('disconnect', () => process.exit(0))

function report(message: NodeMessage): void {
  process.send?.(message)
}

function startUpstream(delayMs: number): void {
  const server = createServer((request, response) => {
    report({ received: String(request.headers['x-id']) })
    request.resume()
    request.on('end', () => {
      systemTimers.schedule(delayMs, () => response.end('done'))
    })
  })
  server.listen(0, '127.0.0.1', () => report({ port: (server.address() as AddressInfo).port }))
}

async function startGateway({
  upstreams,
  redisUrl,
  limit,
  failureMode,
}: NodeOrder & { kind: 'gateway' }): Promise<void> {
  const config = compileGateway(
    {
      routes: [{ name: 'all', match: {}, upstream: 'app' }],
      upstreams: { app: { instances: upstreams.map((url) => ({ url })) } },
    },
    { folder: process.cwd() },
  )
  const store = redisStore(redisUrl, { deadlineMs: 500, denyCache: false })
  const rule = {
    resource: '*',
    dimension: 'global',
    limit,
    window: '1h',
    algorithm: 'fixed-window',
    failureMode,
  } as const
  const parts = { clock: systemClock, random: systemRandom, timers: systemTimers }
  let requests = 0
  const gateway = createGateway({
    ...parts,
    config,
    listen: { host: '127.0.0.1', port: 0 },
    engine: new PolicyEngine({ store, ruleSet: { rules: [rule] } }),
    identifier: new CredentialIdentifier({}, parts),
    createUpstream: (name, upstream) => createUpstream(name, upstream),
    metrics: new MetricRegistry(),
    logger: new Logger(new LogOutput({ stream: process.stderr, nowMs: systemNowMs, level: 'error' })),
    newRequestId: () => `${process.pid}-${++requests}`,
    monotonicMs: systemMonotonicMs,
  })
  await gateway.start()
  process.on('message', () => report({ nodes: store.stats().nodes }))
  report({ port: gateway.port! })
}
