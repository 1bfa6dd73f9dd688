import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, startRedis } from '@sluice/testing/servers'
import type { Bench, BenchResult } from './bench.ts'
import type { GatewayBenchOrder } from './gateway-child.ts'
import { startScript } from './http-servers.ts'
import { medianOf } from './median.ts'
import { type Pressed, WrkScript } from './wrk.ts'

const ROUNDS = 7
const SECONDS = 3
const CONNECTIONS = 64
const ROUTES = 10
const MORE_ROUTES = [100, 1000] as const
const KEYS = Array.from({ length: 100 }, (_, index) => `bench-key-${index}-0123456789abcdef`)

const FLOOR = { 'to the same proxy without limits': 0.88, 'to fastify with rate limit': 1.6, 'to http-proxy-3': 2.2 }
const GROWTH = { 'growth from 10 to 100 routes': 1.1, 'growth from 10 to 1,000 routes': 1.1 }

/** Requests of many callers to many routes, for wrk. */
function scriptOf(routes: number): WrkScript {
  return new WrkScript(`
local keys = { ${KEYS.map((key) => `'${key}'`).join(', ')} }
local count = 0
request = function()
  count = count + 1
  wrk.headers['X-API-Key'] = keys[count % #keys + 1]
  return wrk.format('GET', string.format('/service-%d/orders/17', count % ${routes}))
end
`)
}

/** A proxy under load. */
interface Target {
  readonly name: string
  readonly url: string
  readonly script: WrkScript
  readonly found: Pressed[]
  stop(): Promise<void>
}

/** The gateway against other proxies of Node, in front of the same upstream. */
export const gateway: Bench = {
  id: 'gateway',
  title: 'Requests through the gateway with three limits, against other proxies in front of the same upstream',
  async run(progress) {
    await using redis = await startRedis()
    using few = scriptOf(ROUTES)
    using some = scriptOf(MORE_ROUTES[0])
    using many = scriptOf(MORE_ROUTES[1])
    const base = { kind: 'gateway', upstream: '', isLimited: true, routes: ROUTES, keys: KEYS } as const
    const upstream = await startScript('gateway-child.ts', [JSON.stringify({ ...base, kind: 'upstream' })])
    const targets: Target[] = []
    const start = async (name: string, script: WrkScript, order: Partial<GatewayBenchOrder>): Promise<Target> => {
      const server = await startScript('gateway-child.ts', [
        JSON.stringify({ ...base, upstream: upstream.url, ...order }),
      ])
      const target = { name, script, url: server.url, found: [], stop: () => server.stop() }
      targets.push(target)
      return target
    }
    try {
      const ours = await start('gateway, 3 limits in memory', few, {})
      const open = await start('gateway without limits', few, { isLimited: false })
      const hundred = await start('gateway, 100 routes', some, { routes: MORE_ROUTES[0] })
      const thousand = await start('gateway, 1,000 routes', many, { routes: MORE_ROUTES[1] })
      const shared = await start('gateway, 3 limits on Redis', few, { redisUrl: redis.url })
      const fastify = await start('@fastify/http-proxy, @fastify/rate-limit', few, { kind: 'fastify' })
      const httpProxy = await start('http-proxy-3, no limits', few, { kind: 'http-proxy-3' })
      const nginx = await startNginx(upstream.url, few)
      if (nginx !== undefined) targets.push(nginx)
      for (let round = 0; round <= ROUNDS; round++) {
        for (const { name, url, script, found } of targets) {
          const pressed = await script.press({ url, seconds: SECONDS, connections: CONNECTIONS })
          if (pressed.refused > 0) throw new Error(`${name}: ${pressed.refused} requests were not answered with 200`)
          progress(`round ${round} of ${ROUNDS}: ${name} ${Math.round(pressed.goodPerSecond).toLocaleString('en')}/s`)
          // Round 0 warms all up.
          if (round > 0) found.push(pressed)
        }
      }
      const ratios = {
        'to the same proxy without limits': ratioOf(ours, open),
        'to fastify with rate limit': ratioOf(ours, fastify),
        'to http-proxy-3': ratioOf(ours, httpProxy),
        'growth from 10 to 100 routes': ratioOf(ours, hundred),
        'growth from 10 to 1,000 routes': ratioOf(ours, thousand),
        'on Redis, to memory': ratioOf(shared, ours),
        ...(nginx === undefined ? {} : { 'to nginx with limit_req, one worker': ratioOf(ours, nginx) }),
      }
      return {
        id: 'gateway',
        results: targets.map(resultOf),
        ratios,
        floor: FLOOR,
        ceiling: GROWTH,
        ok: holds(ratios),
        notes: [
          `${CONNECTIONS} connections, ${KEYS.length} callers with verified keys, ${ROUTES} routes, metrics on`,
          'load generator, proxy and upstream share two hardware threads; medians of the ratios of each round',
          ...(nginx === undefined ? ['nginx is not installed and was not measured'] : []),
        ],
      }
    } finally {
      for (const target of targets) await target.stop()
      await upstream.stop()
    }
  },
}

/** The median of the ratios of each round: what else runs on the machine changes both of a round. */
function ratioOf(one: Target, other: Target): number {
  return medianOf(one.found.map(({ goodPerSecond }, round) => goodPerSecond / other.found[round]!.goodPerSecond))
}

function holds(ratios: Readonly<Record<string, number>>): boolean {
  const meetsFloors = Object.entries(FLOOR).every(([name, least]) => ratios[name]! >= least)
  return meetsFloors && Object.entries(GROWTH).every(([name, most]) => ratios[name]! <= most)
}

function resultOf({ name, found }: Target): BenchResult {
  return {
    name,
    opsPerSecond: Math.round(medianOf(found.map(({ goodPerSecond }) => goodPerSecond))),
    p50Ms: medianOf(found.map(({ p50Ms }) => p50Ms)),
    p99Ms: medianOf(found.map(({ p99Ms }) => p99Ms)),
  }
}

/** nginx with one worker and one limit per key, or undefined if it is not installed. */
async function startNginx(upstream: string, script: WrkScript): Promise<Target | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-nginx-'))
  const port = await freePort()
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  limit_req_zone $http_x_api_key zone=callers:10m rate=1000000r/s;
  upstream app { server ${new URL(upstream).host}; keepalive 128; }
  server {
    listen 127.0.0.1:${port}; keepalive_requests 1000000000;
    location / {
      limit_req zone=callers burst=1000000 nodelay;
      proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection "";
    }
  }
}
`,
  )
  const child = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')])
  let isRunning = true
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('exit', () => resolve())
  }).then(() => {
    isRunning = false
  })
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  while (isRunning && !(await answers(port))) await new Promise((resolve) => setTimeout(resolve, 50))
  if (!isRunning) {
    remove()
    return undefined
  }
  return {
    name: 'nginx, limit_req, one worker',
    url: `http://127.0.0.1:${port}`,
    script,
    found: [],
    async stop() {
      child.kill('SIGTERM')
      await ended
      remove()
    },
  }
}

function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    (response) => response.ok,
    () => false,
  )
}
