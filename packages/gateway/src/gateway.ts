import { isDeepStrictEqual } from 'node:util'
import type { HeaderProfile } from '@sluice/contract'
import type { Clock, Random, Timers } from '@sluice/core'
import type { PolicyEngine } from '@sluice/core/policy'
import type { HttpLimiter } from '@sluice/middleware'
import type { Logger, MetricRegistry } from '@sluice/runtime'
import type { CompiledConfig, CompiledUpstream, Route } from './config/compiled-config.ts'
import { RequestHeaders } from './http/request-headers.ts'
import type { Identifier } from './identity/caller.ts'
import { MessageLimits, type MessageLimitsOptions } from './limits/message-limits.ts'
import { createRequestLimits } from './limits/request-limits.ts'
import { AccessLog } from './observability/access-log.ts'
import { GatewayMetrics, type RouteMetrics } from './observability/gateway-metrics.ts'
import { ActiveConfig } from './proxy/active-config.ts'
import type { ConnectionLimit } from './proxy/client-connections.ts'
import type { Exchange, ExchangeParts } from './proxy/exchange.ts'
import { ExchangeWatch } from './proxy/exchange-watch.ts'
import { type ClientBounds, GatewayServer, type ListenOptions } from './proxy/gateway-server.ts'
import { HttpExchange } from './proxy/http-exchange.ts'
import { UpgradeExchange } from './proxy/upgrade-exchange.ts'
import { type AwaitedService, networkProbe, StartupServices } from './startup/startup-services.ts'
import type { Certificates } from './tls/certificates.ts'
import type { Upstream } from './upstreams/upstream.ts'
import { watchUpstreams } from './upstreams/upstream-metrics.ts'

/** What a gateway is made of. Time, randomness and output come in from outside. */
export interface GatewayParts {
  readonly config: CompiledConfig
  readonly listen: ListenOptions
  readonly engine: PolicyEngine
  /** Identifies callers under `config`. The gateway starts and closes it. */
  readonly identifier: Identifier
  /** Makes the instances of an upstream. The gateway starts and closes it. */
  readonly createUpstream: (name: string, config: CompiledUpstream) => Upstream
  readonly metrics: MetricRegistry
  readonly logger: Logger
  /** Unique for each request. */
  readonly newRequestId: () => string
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** Milliseconds since some instant; never goes back. */
  readonly monotonicMs: () => number
  /** Takes lines of the access log, without line end. Default: none are written. */
  readonly writeAccessLine?: (line: string) => void
  /** Which rate limit headers are sent. Default: `legacy`. */
  readonly headers?: HeaderProfile
  /** Maximum random share added to `Retry-After`. Default: 0. */
  readonly jitter?: number
  readonly bounds?: ClientBounds
  readonly connectionLimit?: ConnectionLimit
  /** How long a stop waits for requests in flight. Default: 30 s. */
  readonly graceMs?: number
}

const DEFAULT_GRACE_MS = 30_000

/** Creates a gateway. It serves after `start`. */
export function createGateway(parts: GatewayParts): Gateway {
  return new Gateway(parts)
}

/** A reverse proxy with limits. It runs once: new, serving, draining, stopped. */
export class Gateway {
  readonly #parts: GatewayParts
  readonly #exchangeParts: ExchangeParts
  readonly #limiter: HttpLimiter<Exchange>
  readonly #messageLimits: MessageLimits
  readonly #server: GatewayServer
  readonly #watch: ExchangeWatch
  readonly #metrics: GatewayMetrics
  #services: StartupServices
  /**
   * Whether all services were available once. Services that a later configuration names do not make the gateway
   * unready: all nodes read the same file, and a wrong URL in it would take all of them out of service.
   */
  #hadServices = false
  #active: ActiveConfig | undefined
  #isDraining = false
  /** The last change of configuration; the next one begins after it. */
  #changing: Promise<void> = Promise.resolve()
  /** Configurations that were replaced and that requests still hold. */
  readonly #retired = new Set<ActiveConfig>()
  readonly #closing = new Set<Promise<void>>()

  constructor(parts: GatewayParts) {
    this.#parts = parts
    const { timers, clock, random, logger, monotonicMs, listen } = parts
    this.#metrics = new GatewayMetrics(parts.metrics, () => this.#server.connections)
    watchUpstreams(parts.metrics, () => this.upstreams.values())
    this.#services = this.#servicesOf(parts.config)
    this.#watch = new ExchangeWatch(timers, monotonicMs)
    this.#limiter = limitsOf(parts)
    this.#messageLimits = new MessageLimits({ ...hooksOf(parts), engine: parts.engine, clock, timers, random })
    this.#exchangeParts = {
      limits: this.#limiter,
      messageLimits: this.#messageLimits,
      timers,
      random,
      monotonicMs,
      newRequestId: parts.newRequestId,
      metrics: this.#metrics,
      accessLog: new AccessLog(clock, parts.writeAccessLine ?? (() => undefined)),
      logger,
      watch: this.#watch,
      isReady: () => this.isReady,
    }
    this.#server = new GatewayServer({
      listen,
      proxyProtocolFrom: () => this.#active?.config.proxyProtocolFrom ?? [],
      bounds: parts.bounds ?? {},
      connectionLimit: parts.connectionLimit,
      metrics: () => this.#metrics,
      timers,
      graceMs: parts.graceMs ?? DEFAULT_GRACE_MS,
      serve: (request, response, expectsContinue) => {
        new HttpExchange(this.#exchangeParts, this.#active!, { request, response, expectsContinue }).begin()
      },
      serveUpgrade: (request, response, socket) => {
        const io = { request, response, socket, expectsContinue: false }
        new UpgradeExchange(this.#exchangeParts, this.#active!, io).begin()
      },
      logger,
    })
  }

  /** The port that it listens on. Undefined unless it listens. */
  get port(): number | undefined {
    return this.#server.port
  }

  /** Number of open connections of clients. */
  get connections(): number {
    return this.#server.connections
  }

  /** Number of requests in flight. */
  get inFlight(): number {
    return this.#watch.size
  }

  /**
   * Whether the services that the configuration names were all available, every upstream has an instance that takes
   * requests, and the gateway is not about to stop.
   */
  get isReady(): boolean {
    if (this.#isDraining || this.#active === undefined || !this.#hadServices) return false
    for (const upstream of this.#active.upstreams.values()) if (!upstream.isAvailable) return false
    return true
  }

  /** Services of the configuration in use that were not available yet. */
  get awaitedServices(): readonly AwaitedService[] {
    return this.#services.awaited()
  }

  /** Upstreams in use, by name. */
  get upstreams(): ReadonlyMap<string, Upstream> {
    return this.#active?.upstreams ?? new Map()
  }

  /**
   * Starts identity and upstreams, then listens. Rejects with the error of the system if it cannot listen. It is not
   * ready before the services of the configuration are available.
   */
  async start(): Promise<void> {
    await this.use(this.#parts.config, this.#parts.identifier)
    await this.#server.start()
    this.#waitForServices()
  }

  /**
   * Replaces the configuration. New requests use it once its upstreams have started; requests in flight keep the one
   * that they started with. Upstreams that are the same in both go on; others close after their requests.
   * `identifier`: for this configuration. Default: the one in use.
   */
  use(config: CompiledConfig, identifier?: Identifier): Promise<void> {
    const change = this.#changing.then(() =>
      this.#replace(config, identifier ?? this.#active?.identifier ?? this.#parts.identifier),
    )
    this.#changing = change.catch(() => undefined)
    return change
  }

  /** Serves on and lets clients move to other nodes; resolves after `drainMs`. */
  async drain(drainMs: number): Promise<void> {
    this.#isDraining = true
    this.#server.drain()
    await new Promise<void>((resolve) => void this.#parts.timers.schedule(drainMs, resolve))
  }

  /** Accepts nothing more, answers what has begun, closes all connections and upstreams. */
  async stop(): Promise<void> {
    this.#isDraining = true
    await this.#services.close()
    await this.#changing
    for (const exchange of this.#watch.all()) exchange.leave()
    if (this.#server.port !== undefined) await this.#server.stop()
    this.#watch.close()
    const active = this.#active
    this.#active = undefined
    await Promise.all([...this.#closing, ...[...(active?.upstreams.values() ?? [])].map((each) => each.close())])
    await active?.identifier.close()
    await Promise.all([this.#limiter.close(), this.#messageLimits.close()])
  }

  async #replace(config: CompiledConfig, identifier: Identifier): Promise<void> {
    const before = this.#active
    const upstreams = new Map<string, Upstream>()
    const added: Upstream[] = []
    let certificates: Certificates | undefined
    try {
      this.#findUpstreams(config, upstreams, added)
      const active = this.#activate(config, identifier, upstreams)
      const services = this.#otherServices(before?.config, config)
      const isSame = before?.identifier === identifier
      certificates = await this.#readCertificates(before?.config, config)
      await Promise.all([isSame ? undefined : identifier.start(), ...added.map((upstream) => upstream.start())])
      if (certificates !== undefined || config.options.tls === undefined) this.#server.useCertificates(certificates)
      this.#active = active
      if (before !== undefined) this.#retire(before, active)
      if (services !== undefined) this.#useServices(services)
    } catch (error) {
      certificates?.close()
      await Promise.all(added.map((upstream) => upstream.close()))
      throw error
    }
  }

  /** Waits for the services of a configuration. Undefined if they are those that are waited for already. */
  #otherServices(before: CompiledConfig | undefined, config: CompiledConfig): StartupServices | undefined {
    const isSame = before === undefined || isDeepStrictEqual(before.options.services, config.options.services)
    return isSame ? undefined : this.#servicesOf(config, this.#services)
  }

  #servicesOf({ options }: CompiledConfig, previous?: StartupServices): StartupServices {
    const { timers, random, logger } = this.#parts
    const probe = networkProbe()
    return new StartupServices(options.services ?? {}, { timers, random, log: logger, probe }, previous)
  }

  #useServices(services: StartupServices): void {
    const closing = this.#services.close().finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
    this.#services = services
    this.#waitForServices()
  }

  #waitForServices(): void {
    const services = this.#services
    this.#hadServices ||= services.awaited().length === 0
    services.wait().then(
      () => {
        this.#hadServices ||= services === this.#services
      },
      // Because of `stop`, or of another configuration.
      () => undefined,
    )
  }

  /** Fills `upstreams` with those of the configuration: the same as before where nothing changes. */
  #findUpstreams(config: CompiledConfig, upstreams: Map<string, Upstream>, added: Upstream[]): void {
    const before = this.#active
    for (const [name, upstreamConfig] of config.upstreams) {
      const known = before?.upstreams.get(name)
      if (known !== undefined && isDeepStrictEqual(before!.config.upstreams.get(name), upstreamConfig)) {
        upstreams.set(name, known)
        continue
      }
      const upstream = this.#parts.createUpstream(name, upstreamConfig)
      upstreams.set(name, upstream)
      added.push(upstream)
    }
  }

  /** Certificates of the configuration that have to be read. Undefined: nothing changes, or there are none. */
  async #readCertificates(
    before: CompiledConfig | undefined,
    { options }: CompiledConfig,
  ): Promise<Certificates | undefined> {
    const { tls } = options
    if (tls === undefined || isDeepStrictEqual(tls, before?.options.tls)) return undefined
    return await this.#server.readCertificates(tls)
  }

  #activate(config: CompiledConfig, identifier: Identifier, upstreams: ReadonlyMap<string, Upstream>): ActiveConfig {
    const before = this.#active
    const { forwardedHeader } = config.options
    const isSame = before?.identifier === identifier && before.config.options.forwardedHeader === forwardedHeader
    const requestHeaders = isSame
      ? before.requestHeaders
      : new RequestHeaders(identifier.removedHeaders, this.#parts.random, forwardedHeader)
    const metricsOf = (route: Route): RouteMetrics => this.#metrics.ofRoute(route)
    return new ActiveConfig(config, { upstreams, identifier, requestHeaders, metricsOf })
  }

  /** Closes what `before` uses and `active` does not, when no request of `before` or an earlier one is left. */
  #retire(before: ActiveConfig, active: ActiveConfig): void {
    const kept = new Set(active.upstreams.values())
    const removed: { close(): Promise<void> }[] = [...before.upstreams.values()].filter((each) => !kept.has(each))
    if (before.identifier !== active.identifier) removed.push(before.identifier)
    this.#retired.add(before)
    const closing = Promise.all(Array.from(this.#retired, (each) => each.free())).then(async () => {
      this.#retired.delete(before)
      await Promise.all(removed.map((each) => each.close()))
    })
    const settled = closing
      .catch((error: unknown) => this.#parts.logger.error('an upstream did not close', { error: String(error) }))
      .finally(() => this.#closing.delete(settled))
    this.#closing.add(settled)
  }
}

function limitsOf(parts: GatewayParts): HttpLimiter<Exchange> {
  const { engine, headers, jitter, clock, timers, random } = parts
  return createRequestLimits<Exchange>({
    engine,
    routeOf: (exchange) => exchange.activeRoute!.route,
    callerOf: (exchange) => exchange.caller!,
    headers,
    jitter,
    clock,
    timers,
    random,
    ...hooksOf(parts),
  })
}

function hooksOf({ logger }: GatewayParts): Pick<MessageLimitsOptions, 'onError' | 'warn'> {
  return {
    onError: (error) => logger.warn('a charge could not be settled', { error: String(error) }),
    warn: ({ code, message }) => logger.warn('the limits are used in a way that is likely wrong', { code, message }),
  }
}
