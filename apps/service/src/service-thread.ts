import { dirname, resolve } from 'node:path'
import type { SharedMemoryHandle } from '@sluice/core'
import type { StartupPart } from '@sluice/runtime'
import { MetricRegistry, StartupGraph } from '@sluice/runtime'
import { alertBounds, alertRules } from './alerts/alert-rule.ts'
import { threadSignals } from './alerts/alert-signals.ts'
import { blockAnnouncer } from './alerts/block-export.ts'
import { Authenticator } from './auth/authenticator.ts'
import { ClientAddresses } from './auth/request-origin.ts'
import { Sessions } from './auth/sessions.ts'
import type { ThreadSystem } from './clock-and-random.ts'
import { randomNames } from './clock-and-random.ts'
import type { DataFolder } from './config/data-folder.ts'
import { shareFollowing } from './config/follow-changes.ts'
import type { ReconnectingConfigStore } from './config/reconnecting-config-store.ts'
import type { DecisionEngine, EngineParts } from './engine/engine.ts'
import { openEngine } from './engine/engine.ts'
import { connectionLimitOf } from './listeners/connection-limit.ts'
import type { GatewayListenerParts } from './listeners/gateway/gateway-listener.ts'
import { GatewayListener } from './listeners/gateway/gateway-listener.ts'
import { GrpcListener } from './listeners/grpc/grpc-listener.ts'
import type { HttpListenerParts } from './listeners/http/http-listener.ts'
import { httpListeners } from './listeners/http/http-listener.ts'
import { RequestObserver } from './listeners/http/request-observer.ts'
import type { ListenerPorts } from './listeners/listener.ts'
import { ListenerSet } from './listeners/listener-set.ts'
import { RespListener } from './listeners/resp/resp-listener.ts'
import { DecisionSample } from './observability/decision-sample.ts'
import { Instrument } from './observability/instrument.ts'
import { shareReports } from './observability/metrics-aggregator.ts'
import { OtlpTracing } from './observability/tracing/otlp-tracing.ts'
import { adminHandlers } from './operations/admin/admin-handlers.ts'
import { AuditNotes } from './operations/admin/audit.ts'
import type { AdminOptions } from './operations/admin/config-access.ts'
import type { SessionHandlerParts } from './operations/admin/sessions.ts'
import { sessionHandlers } from './operations/admin/sessions.ts'
import { checkHandlers } from './operations/check/check-handlers.ts'
import type { CheckHealth } from './operations/health.ts'
import { Readiness } from './operations/health.ts'
import { alertHandlers } from './operations/monitoring/alerts.ts'
import { decisionHandlers as decisionSampleHandlers } from './operations/monitoring/decisions.ts'
import { gatewayHandlers } from './operations/monitoring/gateway.ts'
import { observabilityHandlers } from './operations/monitoring/metrics.ts'
import { forwardAuthHandlers } from './operations/proxy/forward-auth.ts'
import type { ServiceContext, ServiceMessages } from './service-context.ts'
import type { Settings } from './settings/settings.ts'
import type { ThreadGroup } from './thread-messages/message-bus.ts'

/** What {@link createServiceThread} needs. */
export interface ServiceThreadParts {
  readonly settings: Settings
  readonly system: ThreadSystem
  readonly folder: DataFolder
  readonly threads: ThreadGroup<ServiceMessages>
  /** Not closed by the node. */
  readonly database: ReconnectingConfigStore
  readonly shared: SharedMemoryHandle | undefined
  /** Counters of failed authentication attempts, shared by all threads; undefined with one thread. */
  readonly failures: SharedMemoryHandle | undefined
  readonly secret: Uint8Array
  readonly nextId: () => string | undefined
  /** Where the listeners listen; one without a port is off. */
  readonly ports: ListenerPorts
  /** Readiness checks besides those of this thread. */
  readonly checks: readonly CheckHealth[]
}

/** One thread that serves requests. `start` and `stop` are those of a `StartupGraph`. */
export interface ServiceThread {
  readonly context: ServiceContext
  /** Ports of the listeners; empty unless started. */
  readonly ports: ListenerPorts
  start(): Promise<void>
  /** Reports not ready and closes connections after their responses; resolves after `drainMs`. */
  drain(drainMs: number): Promise<void>
  stop(): Promise<void>
}

/** Shorter than the time that a thread has to reply. */
const STORE_WAIT_MS = 1000

/** Creates one thread of the service: wiring only. It listens after `start`. */
export function createServiceThread(parts: ServiceThreadParts): ServiceThread {
  const { settings, system, threads, secret, nextId, failures } = parts
  const { clock, sleep, random, log } = system
  const newName = randomNames(system.secureRandom)
  const metrics = new MetricRegistry()
  const tracing = settings.otlpEndpoint === undefined ? undefined : tracingTo(settings.otlpEndpoint, system)
  // `configLagMs` runs when signals are gathered, which is after `limits` is set.
  const signals = threadSignals(threads, {
    rules: alertRules(settings.alerts.options),
    nowMs: () => clock.nowMicros() / 1000,
    configLagMs: () => limits.follower.stats().lagMs,
  })
  const { region, redis, trustedProxies, basePath } = settings
  const decisions = new DecisionSample({ clock, secret, name: newName() })
  const instrument = new Instrument({ metrics, log, clock, secret, signals, tracer: tracing, region, decisions, redis })
  const announceBlock = blockAnnouncer({ threads, isExported: settings.blockWebhooks.length > 0, log })
  // Runs when the rules file is read, which is after `gateway` is set.
  const onGateway: EngineParts['onGateway'] = (file) => gateway?.use(file)
  const limits: DecisionEngine = openEngine({ ...parts, ...system, instrument, announceBlock, onGateway })
  const { store, engine, config, follower } = limits
  const context: ServiceContext = {
    ...{ settings, clock, sleep, random, log },
    ...{ store, engine, config, follower, metrics, secret, nextId, threads, decisions },
  }
  threads.handle('config.stats', () => follower.stats())
  shareFollowing({ threads, log, follower: limits.besideFile?.follower ?? follower })
  decisions.share(threads)
  shareReports(threads, newName(), () => instrument.report())
  const observation = { metrics, log, monotonicMs: system.monotonicMs, secret, tracing }
  const loopDelay = system.openLoopDelay()
  const readiness = new Readiness([...parts.checks, ...limits.checks])
  const connectionLimit = connectionLimitOf(settings)
  const { keys } = limits
  const addresses = new ClientAddresses(trustedProxies, settings.httpTls !== undefined)
  const authenticator = new Authenticator({ ...context, keys, random: system.secureRandom, failures, addresses })
  const sessions = new Sessions({ ...context, keys, addresses, basePath, newId: newName })
  const { atTurnEnd, monotonicMs } = system
  const common = {
    ...{ context, authenticator, connectionLimit, loopDelay, atTurnEnd, metrics, monotonicMs },
    sharesPort: threads.count > 1,
  }
  const observe = instrument.observePolicy
  const handlers = handlersOf(context, limits, { ...parts, announceBlock, observe, authenticator, sessions })
  const http = httpListeners({
    ...common,
    sessions,
    readiness,
    newRequestId: newName,
    handlers,
    observer: new RequestObserver(observation),
    ports: parts.ports,
  })
  const { resp: respSettings, grpc: grpcSettings } = settings
  const respParts = { ...handlers, ...common, observer: instrument, port: parts.ports.resp ?? 0 }
  const resp = respSettings && new RespListener({ ...respParts, settings: respSettings })
  const grpcParts = { ...common, readiness, port: parts.ports.grpc ?? 0 }
  const grpc = grpcSettings && new GrpcListener({ ...grpcParts, settings: grpcSettings })
  const gateway = gatewayOf(parts, { ...common, newRequestId: () => nextId() ?? newName() })
  const listeners = new ListenerSet(
    [...http, resp, grpc, gateway].filter((listener) => listener !== undefined),
    settings,
  )
  readiness.add([...listeners.checks, ...(gateway === undefined ? [] : [() => gateway.check()])])
  threads.handle('readiness.reasons', async () => {
    await limits.connected(STORE_WAIT_MS)
    return await readiness.reasons()
  })
  const graph = new StartupGraph([
    watching(system, instrument, context),
    { name: 'lag', stop: () => loopDelay.close() },
    { name: 'tracing', start: () => tracing?.start(), stop: () => tracing?.close() },
    { name: 'store', dependsOn: ['watching', 'lag', 'tracing'], stop: () => limits.closeStore() },
    { name: 'rules', dependsOn: ['store'], start: () => limits.startFollowing(), stop: () => limits.stopFollowing() },
    { name: 'listeners', dependsOn: ['rules'], start: () => listeners.start(metrics), stop: () => listeners.stop() },
  ])
  return {
    context,
    get ports() {
      return listeners.ports
    },
    start: () => graph.start(),
    async drain(drainMs) {
      readiness.beginStop()
      await listeners.drain(drainMs)
    },
    stop: () => graph.stop(),
  }
}

function tracingTo(endpoint: string, { clock, monotonicMs, log }: ThreadSystem): OtlpTracing {
  return new OtlpTracing({ endpoint, clock, monotonicMs, log })
}

/** The gateway of this thread; undefined if it is off. */
function gatewayOf(
  { settings, system, ports }: ServiceThreadParts,
  parts: Pick<GatewayListenerParts, 'newRequestId' | 'connectionLimit' | 'sharesPort'> & {
    readonly context: ServiceContext
    readonly authenticator: Authenticator
  },
): GatewayListener | undefined {
  const { context, authenticator, newRequestId, connectionLimit, sharesPort } = parts
  if (settings.gateway === undefined) {
    context.threads.handle('gateway.status', () => undefined)
    return undefined
  }
  const gateway = new GatewayListener({
    ...context,
    ...{ newRequestId, connectionLimit, sharesPort, gateway: settings.gateway },
    random: system.secureRandom,
    monotonicMs: system.monotonicMs,
    writeLine: system.writeLine,
    port: ports.gateway ?? 0,
    folder: dirname(resolve(settings.gateway.file ?? settings.rulesFile ?? '.')),
    countFailure: (address) => authenticator.countFailure(address),
  })
  context.threads.handle('gateway.status', () => gateway.status())
  return gateway
}

function handlersOf(
  context: ServiceContext,
  { file, keys, besideFile }: DecisionEngine,
  parts: Pick<ServiceThreadParts, 'database'> &
    Pick<AdminOptions, 'announceBlock' | 'observe'> &
    Omit<SessionHandlerParts, 'notes'>,
): HttpListenerParts['handlers'] {
  const { database, announceBlock, observe } = parts
  const notes = new AuditNotes({ config: database, log: context.log })
  const options = {
    ...(file && { file }),
    ...(besideFile && { database: besideFile }),
    ...(announceBlock && { announceBlock }),
    ...(observe && { observe }),
  }
  return {
    ...checkHandlers(context),
    ...forwardAuthHandlers(context),
    ...adminHandlers(context, options),
    ...observabilityHandlers(context, {
      rollups: database.rollups,
      keys,
      alertBounds: alertBounds(alertRules(context.settings.alerts.options)),
    }),
    ...decisionSampleHandlers({ ...context, keys }),
    ...alertHandlers(context.threads, notes),
    ...sessionHandlers({ ...parts, notes }),
    ...gatewayHandlers(context.threads),
  }
}

/** Publishes metrics of this thread while it runs. */
function watching(
  { openLoopDelay, readings, logOutput }: ThreadSystem,
  instrument: Instrument,
  { store, engine, follower }: ServiceContext,
): StartupPart {
  const delay = openLoopDelay()
  const stop = instrument.watch({
    store,
    engine,
    follower,
    thread: { loopDelayMs: delay.readMs, heapBytes: readings.heapBytes, logCounts: () => logOutput.counts() },
  })
  return {
    name: 'watching',
    stop() {
      stop()
      delay.close()
    },
  }
}
