import { hostname } from 'node:os'
import type { ConfigStats, DocumentTable } from '@sluice/config-store'
import type { ReadinessReason } from '@sluice/contract'
import type { NowMs } from '@sluice/runtime'
import { isRuntimeError, StartupGraph } from '@sluice/runtime'
import { alertRules } from './alerts/alert-rule.ts'
import type { ProcessAlerts } from './alerts/process-alerts.ts'
import { openAlerts } from './alerts/process-alerts.ts'
import { webhookDelivery } from './alerts/webhook-request.ts'
import { sharedFailures } from './auth/failed-attempts.ts'
import { SessionRegistry } from './auth/session-registry.ts'
import type { ThreadSystem } from './clock-and-random.ts'
import { bytesFrom, randomNames } from './clock-and-random.ts'
import { readKeyFile } from './config/admin-key.ts'
import { checkRulesFile } from './config/check-rules-file.ts'
import { DatabaseHost } from './config/config-database.ts'
import type { DataFolder, LockedFolder } from './config/data-folder.ts'
import { dataFolder, lockDataFolder } from './config/data-folder.ts'
import { followFromMain } from './config/follow-changes.ts'
import type { RedisConnection } from './config/redis-connection.ts'
import { connectRedis, redisDocuments } from './config/redis-connection.ts'
import { sharedDocument } from './config/shared-document.ts'
import { SECRET_BYTES, SigningSecret } from './config/signing-secret.ts'
import { sharedCounters } from './engine/counter-store.ts'
import { machineNumberSource } from './ids/machine-number-source.ts'
import { IdSource, MachineNumberTable } from './ids/machine-numbers.ts'
import type { ListenerPorts } from './listeners/listener.ts'
import { assertPortsFree, listenerPorts } from './listeners/listener.ts'
import { ProcessCluster } from './observability/cluster/process-cluster.ts'
import type { ReportExchange, ScriptRunner } from './observability/cluster/report-exchange.ts'
import { databaseExchange, redisExchange } from './observability/cluster/report-exchange.ts'
import type { RollupStore } from './observability/history/rollup-recorder.ts'
import { HOUR_MS, MINUTE_MS, RollupRecorder, SHORT_MS } from './observability/history/rollup-recorder.ts'
import type { ProcessReadings, WebhookCounts } from './observability/metrics/process-metrics.ts'
import { askReport, collectReports } from './observability/metrics-aggregator.ts'
import { OtlpTracing } from './observability/tracing/otlp-tracing.ts'
import { VERSION } from './operations/openapi.ts'
import type { ServiceMessages } from './service-context.ts'
import type { ServiceThreadParts } from './service-thread.ts'
import type { Settings } from './settings/settings.ts'
import type { MainThread } from './thread-messages/message-bus.ts'
import type { Workers } from './workers/workers.ts'
import { singleWorker, workerThreads } from './workers/workers.ts'

/** What a service needs. */
export interface ServiceParts {
  readonly settings: Settings
  /** Clock, timers and log of this thread; further threads create their own. */
  readonly system: ThreadSystem
  /** Receives the first API key when it was just created. */
  readonly showKey: (token: string) => void
}

/** The service. It runs once. */
export interface Service {
  /** Port of HTTP; undefined unless started. */
  readonly port: number | undefined
  /** Ports of all listeners; empty unless started. */
  readonly ports: ListenerPorts
  start(): Promise<void>
  /**
   * Stops gracefully: reports not ready, finishes in-flight requests, closes everything. With `drains`, first keeps
   * serving for `--drain-ms` while load balancers move traffic away.
   */
  stop(options?: { readonly drains?: boolean }): Promise<void>
  /** Version, source and age of the active rules; undefined if no thread replies. */
  rules(): Promise<ConfigStats | undefined>
  /** Everything that is wrong now, as in `/readyz`, without duplicates. */
  reasons(): Promise<readonly ReadinessReason[]>
}

/** Creates the service. Nothing runs before `start`. */
export function createService(parts: ServiceParts): Service {
  const { settings, system } = parts
  const folder = dataFolder(settings.dataDir)
  const nowMs = (): number => system.clock.nowMicros() / 1000
  const secret = new SigningSecret(settings.databaseUrl === undefined ? undefined : folder.secret)
  const follow = (): Promise<void> => followFromMain(workers.group)
  const host = new DatabaseHost({ ...parts, ...system, folder, secret, nowMs, follow })
  const { database } = host
  const machineNumbers = new MachineNumberTable(settings.threads)
  const numbers = machineNumberSource({ ...system, settings, machineNumbers, database, nowMs })
  const ids = new IdSource(machineNumbers, 0, nowMs)
  const common = { settings, system, folder, database, secret: secret.bytes, nextId: ids.next }
  const workers: Workers = workersOf(common, { secret: secret.memory, machineNumbers: machineNumbers.memory })
  const { rollups, documents } = database
  const watch = new ProcessMonitor({
    settings,
    system,
    folder,
    group: workers.group,
    rollups,
    documents,
    secret: secret.bytes,
    nowMs,
  })
  const sessions = new SessionRegistry({
    ...system,
    document: sharedDocument(documents, 'sessions', system.sleep),
    threads: workers.group,
    nowMs,
    isShared: settings.databaseUrl !== undefined,
  })
  let locked: LockedFolder | undefined
  const lock = async (): Promise<void> => {
    locked = await lockDataFolder(folder)
  }
  // Reports an unusable key file before anything is written.
  const checkKeyFile = async (): Promise<void> => {
    if (settings.adminKeyFile !== undefined) await readKeyFile(settings.adminKeyFile)
  }
  const graph = new StartupGraph([
    { name: 'rules file', start: async () => void (await checkRulesFile(settings, system.clock)) },
    // Before anything is written. The threads listen later, and fail if a port was taken since.
    { name: 'ports', dependsOn: ['rules file'], start: () => assertPortsFree(settings) },
    { name: 'key file', dependsOn: ['ports'], start: checkKeyFile },
    { name: 'lock', dependsOn: ['key file'], start: lock, stop: () => locked?.unlock() },
    { name: 'secret', dependsOn: ['lock'], start: () => secret.start(bytesFrom(system.secureRandom, SECRET_BYTES)) },
    { name: 'database', dependsOn: ['secret'], start: () => host.start(), stop: () => host.stop() },
    { name: 'numbers', dependsOn: ['database'], start: () => numbers.start(), stop: () => numbers.stop() },
    { name: 'alerts', dependsOn: ['numbers'], start: () => watch.openAlerts(), stop: () => watch.closeAlerts() },
    { name: 'sessions', dependsOn: ['database'], start: () => sessions.start(), stop: () => sessions.stop() },
    { name: 'workers', dependsOn: ['alerts', 'sessions'], start: () => workers.start(), stop: () => workers.stop() },
    { name: 'history', dependsOn: ['workers'], start: () => watch.keepHistory(), stop: () => watch.closeHistory() },
    // Last, so that a failed start creates no key.
    { name: 'first key', dependsOn: ['history'], start: () => host.issueFirstKey() },
  ])
  return {
    get port() {
      return workers.ports.http
    },
    get ports() {
      return workers.ports
    },
    async start() {
      try {
        await graph.start()
      } catch (error) {
        // An interrupted start is cleaned up by `stop`.
        if (!isRuntimeError(error, 'SLUICE_RUNTIME_GRAPH_INTERRUPTED')) await locked?.removeIfNew()
        throw error
      }
    },
    async stop({ drains = false } = {}) {
      await workers.drain(drains ? settings.drainMs : 0)
      await graph.stop()
    },
    async rules() {
      const { replies } = await workers.group.gather('config.stats')
      return replies[0]
    },
    async reasons() {
      const { replies } = await workers.group.gather('readiness.reasons')
      return [...new Map(replies.flat().map((reason) => [reason.code, reason])).values()]
    },
  }
}

/** `memory`: shared with further threads. */
function workersOf(
  parts: Omit<ServiceThreadParts, 'threads' | 'checks' | 'shared' | 'failures' | 'ports'>,
  memory: { readonly secret: SharedArrayBuffer; readonly machineNumbers: SharedArrayBuffer },
): Workers {
  const { settings, system } = parts
  if (settings.threads === 1) return singleWorker({ ...parts, shared: undefined, ports: listenerPorts(settings) })
  const { clock } = system
  const counters = { shared: sharedCounters(settings, clock), failures: sharedFailures(clock) }
  return workerThreads({ ...system, settings, ...memory, ...counters })
}

/** Options of {@link ProcessMonitor}. */
export interface ProcessMonitorParts {
  readonly settings: Settings
  readonly system: ThreadSystem
  readonly folder: DataFolder
  readonly group: MainThread<ServiceMessages>
  readonly rollups: RollupStore
  readonly documents: DocumentTable
  /** Key of digests; read at each use. */
  readonly secret: Uint8Array
  readonly nowMs: NowMs
}

const MS_PER_SECOND = 1000

const NO_WEBHOOKS: WebhookCounts = { pending: 0, dead: 0, delivered: 0, failed: 0, failedTries: 0, lost: 0 }

/** Metrics of all threads, alerts and history: once per process, in the main thread. */
class ProcessMonitor {
  readonly #parts: ProcessMonitorParts
  readonly #recorders: readonly RollupRecorder[]
  readonly #cluster: ProcessCluster
  readonly #nodeName: string
  readonly #tracing: OtlpTracing | undefined
  #alerts: ProcessAlerts | undefined
  /** Opened on first use. */
  #redis: Promise<RedisConnection> | undefined

  constructor(parts: ProcessMonitorParts) {
    this.#parts = parts
    const { settings, system, group, rollups, nowMs } = parts
    const { otlpEndpoint: endpoint, alerts, blockWebhooks } = settings
    const isTraced = endpoint !== undefined && alerts.webhooks.length + blockWebhooks.length > 0
    this.#tracing = isTraced ? new OtlpTracing({ ...system, endpoint }) : undefined
    const { readings, secureRandom } = system
    collectReports(group, { ...readings, startedAt: nowMs(), ...this.#alertReadings() })
    const node = randomNames(secureRandom)()
    this.#nodeName = settings.region === undefined ? hostname() : `${hostname()} (${settings.region})`
    const recorded = { ...system, store: rollups, report: () => askReport(group), source: node, node: this.#nodeName }
    this.#recorders = [
      new RollupRecorder({ ...recorded, spansMs: [SHORT_MS] }),
      new RollupRecorder({ ...recorded, spansMs: [MINUTE_MS, HOUR_MS] }),
    ]
    this.#cluster = new ProcessCluster({
      ...system,
      ...{ settings, node, nodeName: this.#nodeName, version: VERSION, secret: parts.secret, nowMs },
      threads: group,
      exchange: this.#exchange(),
    })
  }

  async openAlerts(): Promise<void> {
    const { settings, system, folder, group, rollups, documents, nowMs } = this.#parts
    const { options, webhooks } = settings.alerts
    await this.#tracing?.start()
    this.#alerts = await openAlerts({
      ...system,
      rules: alertRules(options),
      shared: settings,
      documents: { database: () => documents, redis: () => this.#redisDocuments() },
      exchanges: { database: () => databaseExchange(rollups, nowMs), redis: () => this.#redisExchange() },
      remindEveryMs: (options.remindEverySeconds ?? 0) * MS_PER_SECOND,
      node: this.#nodeName,
      newId: randomNames(system.secureRandom),
      webhooks,
      blockWebhooks: settings.blockWebhooks,
      delivery: webhookDelivery(settings.webhooks),
      path: folder.alerts,
      nowMs,
      threads: group,
      tracing: this.#tracing,
    })
  }

  async closeAlerts(): Promise<void> {
    await this.#alerts?.close()
    await (await this.#redis)?.close()
    await this.#tracing?.close()
  }

  keepHistory(): void {
    for (const recorder of this.#recorders) recorder.start()
    this.#cluster.start()
  }

  async closeHistory(): Promise<void> {
    await this.#cluster.stop()
    for (const recorder of this.#recorders) await recorder.close()
  }

  /** Where nodes share their figures: Redis, else a database that several may use. */
  #exchange(): ReportExchange | undefined {
    const { settings, rollups, nowMs } = this.#parts
    if (settings.redis !== undefined) return this.#redisExchange()
    return settings.databaseUrl === undefined ? undefined : databaseExchange(rollups, nowMs)
  }

  #redisExchange(): ReportExchange {
    const run: ScriptRunner['run'] = async (script, key, args) => (await this.#link()).run(script, key, args)
    return redisExchange({ run }, this.#parts.settings.redis!.prefix)
  }

  #link(): Promise<RedisConnection> {
    const { settings, system } = this.#parts
    this.#redis ??= connectRedis(settings.redis!, system.sleep)
    return this.#redis
  }

  /** Documents in the Redis of the counters. The start does not wait for the connection. */
  #redisDocuments(): DocumentTable {
    const { prefix } = this.#parts.settings.redis!
    const documents = this.#link().then((connected) => redisDocuments(connected, prefix))
    return {
      get: async (name) => (await documents).get(name),
      put: async (name, body, revision) => (await documents).put(name, body, revision),
    }
  }

  /** All 0 before alerts are opened. */
  #alertReadings(): Pick<ProcessReadings, 'firingAlerts' | 'webhookCounts'> {
    return {
      firingAlerts: () => this.#alerts?.firingCount() ?? 0,
      webhookCounts: () => this.#alerts?.webhookCounts() ?? NO_WEBHOOKS,
    }
  }
}
