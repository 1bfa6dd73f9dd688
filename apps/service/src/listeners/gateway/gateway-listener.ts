import { isDeepStrictEqual } from 'node:util'
import type { ConfigEvent, FileConfig } from '@sluice/config-store'
import type { GatewayRoute } from '@sluice/contract'
import type { Clock, Random, Timers } from '@sluice/core'
import { systemTimers } from '@sluice/core'
import type { GatewayParts as FileParts, PolicyEngine } from '@sluice/core/policy'
import type { CompiledConfig, Gateway, GatewayConfig, IdentifierParts } from '@sluice/gateway'
import { CredentialIdentifier, compileGateway, createGateway, createUpstream } from '@sluice/gateway'
import type { Logger, MetricRegistry } from '@sluice/runtime'
import { followGatewayFile } from '../../config/rule-source.ts'
import { errorFields } from '../../observability/error-fields.ts'
import type { ThreadGateway } from '../../observability/gateway-status.ts'
import type { HealthCheck } from '../../operations/health.ts'
import type { GatewaySettings, Settings } from '../../settings/settings.ts'
import type { ConnectionLimit } from '../connection-limit.ts'
import type { Listener, ListenSettings } from '../listener.ts'
import { listenAttempt, listenError, listenerHost } from '../listener.ts'
import { DemoUpstream, demoConfig } from './demo-upstream.ts'
import { FileWatch, stampsOf } from './file-watch.ts'
import { gatewayHealth } from './gateway-health.ts'
import { IdentityMetrics } from './identity-metrics.ts'

/** What the gateway of one thread is made of. */
export interface GatewayListenerParts {
  readonly settings: ListenSettings & Pick<Settings, 'headers' | 'retryJitter'>
  readonly gateway: GatewaySettings
  readonly port: number
  /** Whether other threads listen on the same port. */
  readonly sharesPort: boolean
  /** Folder that paths in the configuration file begin in. */
  readonly folder: string
  readonly engine: PolicyEngine
  readonly metrics: MetricRegistry
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly monotonicMs: () => number
  readonly newRequestId: () => string
  readonly connectionLimit: ConnectionLimit
  readonly countFailure: NonNullable<IdentifierParts['countFailure']>
  /** Takes lines of the access log. */
  readonly writeLine: (line: string) => void
}

/** A configuration as it is written, and what is made of it. */
interface UsableConfig {
  readonly mode: 'demo' | 'routes'
  readonly written: GatewayConfig
}

/** Longest wait of a stop for requests in flight; shorter than the time orchestrators give before they kill. */
const GRACE_MS = 10_000

/**
 * The gateway of one thread. It follows the configuration file: other routes and upstreams are in use as soon as the
 * upstreams have started, and requests in flight end as they began. A configuration that cannot be used is reported,
 * and changes nothing.
 */
export class GatewayListener implements Listener {
  readonly name = 'gateway'
  readonly #parts: GatewayListenerParts
  readonly #timers: Timers = systemTimers
  readonly #identityParts: IdentifierParts
  readonly #demo = new DemoUpstream()
  /** Of a file with routes and without rules. Undefined: {@link use} is called with the parts of the rules file. */
  #follower: FileConfig | undefined
  #demoOrigin: string | undefined
  #gateway: Gateway | undefined
  #identifier: CredentialIdentifier | undefined
  /** What the file says. */
  #file: FileParts | undefined
  #inUse: UsableConfig | undefined
  #problem: string | undefined
  /** The last reload; the next one begins after it. */
  #reloading: Promise<void> = Promise.resolve()
  /**
   * Whether all services and upstreams were available once. From then on a missing one makes the service degraded only.
   */
  #wasReady = false
  /** Files such as the pages of denials; read again with the configuration when they change. */
  readonly #files: FileWatch

  constructor(parts: GatewayListenerParts) {
    this.#parts = parts
    const { clock, random, countFailure, metrics, log } = parts
    const observed = new IdentityMetrics(metrics, log)
    this.#identityParts = { clock, random, timers: this.#timers, countFailure, ...observed.hooks }
    this.#files = new FileWatch(this.#timers, () => this.#reloadLater(true))
  }

  get port(): number | undefined {
    return this.#gateway?.port
  }

  get connections(): number {
    return this.#gateway?.connections ?? 0
  }

  /** Takes the parts of the file that are for the gateway. Undefined: there are none. */
  use(file: FileParts | undefined): void {
    this.#file = file
    this.#reloadLater(false)
  }

  /** `isFile`: whether a file that the configuration names has changed. */
  #reloadLater(isFile: boolean): void {
    const gateway = this.#gateway
    if (gateway !== undefined) this.#reloading = this.#reloading.then(() => this.#reload(gateway, isFile))
  }

  async start(): Promise<void> {
    const { file } = this.#parts.gateway
    if (file !== undefined) this.#follower = this.#follow(file)
    try {
      await this.#follower?.ready()
      await this.#start()
    } catch (error) {
      await this.#follower?.close()
      await this.#demo.stop()
      throw error
    }
  }

  async #start(): Promise<void> {
    const wanted = await this.#wanted()
    const { config, stamps } = await this.#read(wanted.written)
    const gateway = this.#create(config)
    try {
      await gateway.start()
    } catch (error) {
      await gateway.stop()
      const { settings, port } = this.#parts
      if ((error as NodeJS.ErrnoException).syscall === undefined) throw error
      throw listenError(error as NodeJS.ErrnoException, listenAttempt('gateway', settings, port))
    }
    this.#gateway = gateway
    this.#inUse = wanted
    this.#files.watch(config.files, stamps)
    // The file may have changed meanwhile. Nothing happens if it has not.
    this.use(this.#file)
  }

  async drain(drainMs: number): Promise<void> {
    await this.#gateway?.drain(drainMs)
  }

  async stop(): Promise<void> {
    this.#files.close()
    await this.#follower?.close()
    await this.#reloading
    await this.#gateway?.stop()
    await this.#demo.stop()
  }

  /** How it stands in this thread. Undefined unless it was started. */
  status(): ThreadGateway | undefined {
    if (this.#gateway === undefined || this.#inUse === undefined) return undefined
    const { mode, written } = this.#inUse
    const upstreams = Array.from(this.#gateway.upstreams.values(), (upstream) => ({
      ...upstream.stats(),
      isAvailable: upstream.isAvailable,
    }))
    const missing = upstreams.filter(({ isAvailable }) => !isAvailable).map(({ name }) => `the upstream "${name}"`)
    const services = this.#gateway.awaitedServices.map(({ name }) => `the service "${name}"`)
    this.#wasReady ||= missing.length === 0 && services.length === 0
    return {
      mode,
      routes: routesOf(written),
      upstreams,
      waitingFor: [...services, ...(this.#wasReady ? [] : missing)],
      wasReady: this.#wasReady,
      keySet: this.#identifier?.keySet,
      problem: this.#problem ?? this.#refused(),
    }
  }

  /** For `/readyz`. */
  check(): HealthCheck {
    const status = this.status()
    return status === undefined ? { name: 'gateway', ready: false, detail: 'not started' } : gatewayHealth(status)
  }

  #follow(file: string): FileConfig {
    const { clock, log } = this.#parts
    const observe = (event: ConfigEvent): void => {
      if (event.type === 'refused' || event.type === 'unavailable') {
        log.error('the routes in the file cannot be used: the previous ones stay in use', {
          file,
          error: errorFields(event.error),
        })
      }
    }
    return followGatewayFile(file, { clock, observe, onGateway: (parts) => this.use(parts) })
  }

  /** Why the file that has only routes is not in use. */
  #refused(): string | undefined {
    const { refused = [], unavailableSince } = this.#follower?.stats() ?? {}
    if (refused.length > 0) return refused[0]!.reason
    return unavailableSince === undefined ? undefined : 'the file cannot be read'
  }

  async #reload(gateway: Gateway, isFile: boolean): Promise<void> {
    const { log } = this.#parts
    try {
      const wanted = await this.#wanted()
      // A file whose rules have changed, or nothing at all.
      if (!isFile && isDeepStrictEqual(wanted, this.#inUse) && this.#problem === undefined) return
      const { config, stamps } = await this.#read(wanted.written)
      const identifier = new CredentialIdentifier(config.options, this.#identityParts, this.#identifier)
      await gateway.use(config, identifier)
      this.#identifier = identifier
      this.#inUse = wanted
      this.#problem = undefined
      this.#files.watch(config.files, stamps)
      const upstreams = [...config.upstreams.keys()]
      const message = isFile ? 'the gateway has read its files again' : 'the gateway has other routes'
      log.info(message, { routes: config.router.routes.length, upstreams })
    } catch (error) {
      this.#problem = (error as Error).message
      log.error('the routes in the file cannot be used: the previous ones stay in use', { error: errorFields(error) })
    }
  }

  /** The configuration that the file asks for: that of the demo without routes, unless there were routes at first. */
  async #wanted(): Promise<UsableConfig> {
    const written = (this.#file ?? {}) as GatewayConfig
    if (this.#parts.gateway.hasRoutes || (written.routes ?? []).length > 0) return { mode: 'routes', written }
    this.#demoOrigin ??= await this.#demo.start()
    return { mode: 'demo', written: demoConfig(this.#demoOrigin) }
  }

  /** Compiles a configuration. `stamps`: of its files. They are older than what was read: a change is not missed. */
  async #read(written: GatewayConfig): Promise<{ readonly config: CompiledConfig; readonly stamps: string }> {
    const { files } = this.#compile(written)
    const stamps = await stampsOf(files)
    return { config: this.#compile(written), stamps }
  }

  #compile(written: GatewayConfig): CompiledConfig {
    return compileGateway(written, { folder: this.#parts.folder })
  }

  #create(config: CompiledConfig): Gateway {
    const { settings, port, sharesPort, log, writeLine, monotonicMs, random } = this.#parts
    const { engine, metrics, clock, newRequestId, connectionLimit } = this.#parts
    this.#identifier = new CredentialIdentifier(config.options, this.#identityParts)
    return createGateway({
      ...{ config, engine, metrics, clock, random, monotonicMs, newRequestId, connectionLimit },
      listen: { host: listenerHost('gateway', settings), port, sharesPort },
      identifier: this.#identifier,
      createUpstream: (name, upstream) =>
        createUpstream(name, upstream, {
          nowMs: monotonicMs,
          timers: this.#timers,
          random,
          log,
        }),
      logger: log,
      timers: this.#timers,
      writeAccessLine: writeLine,
      headers: settings.headers,
      jitter: settings.retryJitter,
      graceMs: GRACE_MS,
    })
  }
}

/** Routes as `GET /admin/gateway` shows them. */
function routesOf({ routes = [] }: GatewayConfig): readonly GatewayRoute[] {
  return routes.map(({ name, match, upstream, auth = 'optional', limits, resource }) => ({
    name,
    path: match.path ?? '*',
    upstream,
    auth,
    limited: limits !== 'off',
    ...(match.hosts && { hosts: [...match.hosts] }),
    ...(match.methods && { methods: [...match.methods] }),
    ...(resource !== undefined && { resource }),
  }))
}
