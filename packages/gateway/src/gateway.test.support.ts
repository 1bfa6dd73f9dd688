import { once } from 'node:events'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Server as NetServer, type Socket } from 'node:net'
import { memoryStore, systemClock, systemTimers, type Timers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import { PolicyEngine, type RuleSet } from '@sluice/core/policy'
import { Logger, LogOutput, MetricRegistry, systemTurnEnd } from '@sluice/runtime'
import { seededRandom } from '@sluice/testing'
import { Pool } from 'undici'
import { onTestFinished } from 'vitest'
import type { CompiledConfig, Route } from './config/compiled-config.ts'
import type { UpstreamConfig } from './config/gateway-config.ts'
import { createGateway, type Gateway, type GatewayParts } from './gateway.ts'
import type { Identifier } from './identity/caller.ts'
import type {
  Attempt,
  AttemptOutcome,
  BalancedRequest,
  NoInstance,
  Upstream,
  UpstreamStats,
} from './upstreams/upstream.ts'

/** A route with everything off. */
export function routeOf(fields: Partial<Route> = {}): Route {
  return {
    name: 'all',
    upstream: 'app',
    targetOf: (path) => path,
    host: undefined,
    resource: undefined,
    auth: 'optional',
    isLimited: true,
    refunds: undefined,
    blockAfter: undefined,
    denial: undefined,
    webSocket: undefined,
    timeouts: { connectMs: 2000, headersMs: 5000, idleMs: 5000, totalMs: Number.POSITIVE_INFINITY },
    maxBodyBytes: 1_000_000,
    retries: { attempts: 1, statuses: new Set([502, 503, 504]), budget: 1 },
    priority: 1,
    ...fields,
  }
}

/** A configuration whose first route takes every request, unless `find` says otherwise. */
export function configOf(
  routes: readonly Route[],
  upstreams: Readonly<Record<string, readonly string[]>>,
  fields: Partial<CompiledConfig> = {},
): CompiledConfig {
  return {
    options: {},
    router: { routes, find: () => routes[0], isAmbiguous: () => false },
    upstreams: new Map(
      Object.entries(upstreams).map(([name, urls]) => [name, { instances: urls.map((url) => ({ url })) }]),
    ),
    files: [],
    trustedProxies: [],
    proxyProtocolFrom: [],
    accessLog: 'off',
    healthPaths: new Set(),
    ...fields,
  }
}

/** Instances in order: the first that was not tried. Outcomes are kept. */
export class ListedUpstream implements Upstream {
  readonly hashBy: string | undefined = undefined
  readonly name: string
  readonly outcomes: (AttemptOutcome & { instance: string })[] = []
  readonly asked: BalancedRequest[] = []
  isAvailable = true
  isStarted = false
  isClosed = false
  retriesLeft: number = Number.POSITIVE_INFINITY
  noInstance: NoInstance | undefined
  readonly #pools: Map<string, Pool>

  constructor(name: string, { instances, connections = 16 }: UpstreamConfig, options: Pool.Options = {}) {
    this.name = name
    this.#pools = new Map(
      instances.map(({ url }) => [
        url,
        new Pool(url, { connections, allowH2: false, pipelining: 1, connect: { timeout: 1000 }, ...options }),
      ]),
    )
  }

  choose(request: BalancedRequest, tried?: ReadonlySet<string>): Attempt | NoInstance {
    this.asked.push(request)
    if (this.noInstance !== undefined) return this.noInstance
    const urls = [...this.#pools.keys()]
    const instance = urls.find((url) => tried?.has(url) !== true) ?? urls[0]!
    const { host } = new URL(instance)
    return {
      instance,
      url: instance,
      dispatcher: this.#pools.get(instance)!,
      protocol: 'http1',
      authority: host,
      finish: (outcome) => void this.outcomes.push({ ...outcome, instance }),
    }
  }

  takeRetry(): boolean {
    return this.retriesLeft-- > 0
  }

  stats(): UpstreamStats {
    const turnedAway = { noHealthyInstance: 0, noCapacity: 0 }
    return { name: this.name, instances: [], unresolved: [], retries: { taken: 0, denied: 0 }, turnedAway }
  }

  start(): Promise<void> {
    this.isStarted = true
    return Promise.resolve()
  }

  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()))
  }
}

/** Everyone is who their address says. `x-user` is believed, so that tests can choose. */
export const openIdentifier: Identifier = {
  identify: (request) => {
    const user = request.header('x-user')
    return {
      ip: request.peerAddress,
      user: typeof user === 'string' ? user : undefined,
      apiKey: undefined,
      tenant: undefined,
      tier: undefined,
    }
  },
  removedHeaders: new Set(['x-user']),
  start: () => Promise.resolve(),
  close: () => Promise.resolve(),
}

/** No limits. */
const OPEN: RuleSet = { rules: [] }

/** A gateway in a test, and what it is made of. */
export interface TestGateway {
  readonly gateway: Gateway
  readonly origin: string
  readonly port: number
  readonly upstreams: Map<string, ListedUpstream>
  readonly metrics: MetricRegistry
  readonly logged: string[]
  readonly accessLines: string[]
}

export interface TestGatewayOptions extends Partial<GatewayParts> {
  readonly config: CompiledConfig
  readonly ruleSet?: RuleSet
  readonly pool?: Pool.Options
  readonly timers?: Timers
}

/** Starts a gateway on a free port; it stops with the test. */
export async function startGateway({ ruleSet, pool, ...parts }: TestGatewayOptions): Promise<TestGateway> {
  const upstreams = new Map<string, ListedUpstream>()
  const logged: string[] = []
  const accessLines: string[] = []
  const metrics = new MetricRegistry()
  const stream = {
    write(text: string, written: () => void): boolean {
      logged.push(text)
      written()
      return true
    },
    on: () => undefined,
    off: () => undefined,
  }
  let requests = 0
  const gateway = createGateway({
    listen: { host: '127.0.0.1', port: 0 },
    engine: new PolicyEngine({ store: memoryStore(), ruleSet: ruleSet ?? OPEN }),
    identifier: openIdentifier,
    createUpstream: (name, config) => {
      const upstream = new ListedUpstream(name, config, pool)
      upstreams.set(name, upstream)
      return upstream
    },
    metrics,
    logger: new Logger(new LogOutput({ stream, nowMs: () => 0 })),
    newRequestId: () => `id-${++requests}`,
    clock: systemClock,
    timers: systemTimers,
    random: seededRandom(1),
    monotonicMs: systemMonotonicMs,
    writeAccessLine: (line) => void accessLines.push(line),
    graceMs: 1000,
    ...parts,
  })
  await gateway.start()
  onTestFinished(() => gateway.stop())
  const port = gateway.port!
  return { gateway, origin: `http://127.0.0.1:${port}`, port, upstreams, metrics, logged, accessLines }
}

/** A request that an upstream received. */
export interface ReceivedRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly rawHeaders: readonly string[]
  readonly body: string
  readonly trailers: IncomingMessage['trailers']
}

/** A server that keeps what it received. */
export interface TestUpstream {
  readonly url: string
  readonly port: number
  readonly received: ReceivedRequest[]
  readonly server: Server
}

/** Starts an upstream; it stops with the test. Without a listener it answers 200 with `ok`. */
export async function startUpstream(listener?: RequestListener): Promise<TestUpstream> {
  const received: ReceivedRequest[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers, rawHeaders, trailers } = request
      received.push({ method, url, headers, rawHeaders, trailers, body: Buffer.concat(chunks).toString() })
    })
    request.on('error', () => undefined)
    if (listener === undefined) request.on('end', () => response.end('ok'))
    else listener(request, response)
  })
  const { port } = await listen(server)
  return { url: `http://127.0.0.1:${port}`, port, received, server }
}

/** Listens on a free port; closes with the test. */
export async function listen(server: NetServer): Promise<AddressInfo> {
  // Also those that are no HTTP any more.
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => void sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  })
  return server.address() as AddressInfo
}

/** A connection on which a test writes bytes as it likes. */
export class RawClient {
  readonly socket: Socket
  /** Whether the connection was reset. */
  hasFailed = false
  #text = ''
  #isClosed = false
  #wake: (() => void) | undefined

  constructor(port: number) {
    // Else what is sent next may wait for an acknowledgement, and a test would look too early.
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString('latin1')
      this.#wake?.()
    })
    this.socket.on('error', () => {
      this.hasFailed = true
    })
    this.socket.on('close', () => {
      this.#isClosed = true
      this.#wake?.()
    })
    onTestFinished(() => void this.socket.destroy())
  }

  /** Everything received so far. */
  get text(): string {
    return this.#text
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  send(bytes: string | Buffer): this {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    return this
  }

  /** Waits until this text was received; rejects if the connection closes before. */
  async until(text: string): Promise<string> {
    while (!this.#text.includes(text)) {
      if (this.#isClosed) throw new Error(`closed after ${JSON.stringify(this.#text)}`)
      await this.#change()
    }
    return this.#text
  }

  /** Waits until the connection is closed. */
  async closed(): Promise<string> {
    while (!this.#isClosed) await this.#change()
    return this.#text
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}

const LONGEST_WAIT_MS = 10_000

/** Waits for something that input from the network changes. */
export async function until(isTrue: () => boolean): Promise<void> {
  const givenUpMs = systemMonotonicMs() + LONGEST_WAIT_MS
  while (!isTrue()) {
    if (systemMonotonicMs() > givenUpMs) throw new Error(`not true in time: ${isTrue}`)
    await turns(1)
  }
}

/** Waits for a number of event loop turns, so that pending data arrives. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => systemTurnEnd(resolve))
}
