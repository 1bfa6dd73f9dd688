import { hostname } from 'node:os'
import type { DocumentTable } from '@sluice/config-store'
import type { NowMs } from '@sluice/runtime'
import { alertRules } from './alerts/alert-rule.ts'
import type { OpenAlerts, WebhookCounts } from './alerts/open-alerts.ts'
import { openAlerts } from './alerts/open-alerts.ts'
import { webhookDelivery } from './alerts/webhook.ts'
import type { DataFolder } from './config/data-folder.ts'
import type { RedisLink } from './config/redis-connection.ts'
import { connectRedis } from './config/redis-connection.ts'
import { redisDocuments } from './config/redis-documents.ts'
import type { ThreadSystem } from './node.ts'
import { RollupRecorder } from './observability/history/rollup-recorder.ts'
import type { RollupStore } from './observability/history/rollup-store.ts'
import type { ProcessReadings } from './observability/metrics/process-metrics.ts'
import { askReport, collectReports } from './observability/metrics-aggregator.ts'
import { OtlpTracing } from './observability/tracing/otlp-tracing.ts'
import { drawHex } from './random-bytes.ts'
import type { Settings } from './settings.ts'
import type { MainThread } from './threads/thread-group.ts'

/** What a process is watched with. */
export interface ProcessWatchParts {
  readonly settings: Settings
  readonly system: ThreadSystem
  readonly folder: DataFolder
  readonly group: MainThread
  readonly rollups: RollupStore
  readonly documents: DocumentTable
  readonly nowMs: NowMs
}

const NAME_BYTES = 8
const MS_PER_SECOND = 1000

const NO_WEBHOOKS: WebhookCounts = { pending: 0, dead: 0, delivered: 0, failed: 0, failedTries: 0, lost: 0 }

/** What is looked after once for all threads, in the main thread: one report of all, alerts, and history. */
export class ProcessWatch {
  readonly #parts: ProcessWatchParts
  readonly #recorder: RollupRecorder
  readonly #tracing: OtlpTracing | undefined
  #alerts: OpenAlerts | undefined
  /** Opened when alerts are coordinated through Redis. */
  #redis: Promise<RedisLink> | undefined

  constructor(parts: ProcessWatchParts) {
    this.#parts = parts
    const { settings, system, group, rollups, nowMs } = parts
    const { otlpEndpoint: endpoint, alerts, blockWebhooks } = settings
    const isTraced = endpoint !== undefined && alerts.webhooks.length + blockWebhooks.length > 0
    this.#tracing = isTraced ? new OtlpTracing({ ...system, endpoint }) : undefined
    const { readings, secureRandom } = system
    collectReports(group, { ...readings, startedAt: nowMs(), ...this.#alertReadings() })
    this.#recorder = new RollupRecorder({
      ...system,
      store: rollups,
      report: () => askReport(group),
      source: drawHex(secureRandom, NAME_BYTES),
    })
  }

  /** Begins to watch for what somebody should look at. */
  async openAlerts(): Promise<void> {
    const { settings, system, folder, group, documents, nowMs } = this.#parts
    const { options, webhooks } = settings.alerts
    await this.#tracing?.start()
    this.#alerts = await openAlerts({
      ...system,
      rules: alertRules(options),
      shared: settings,
      documents: { database: () => documents, redis: () => this.#redisDocuments() },
      remindEveryMs: (options.remindEverySeconds ?? 0) * MS_PER_SECOND,
      node: settings.region === undefined ? hostname() : `${hostname()} (${settings.region})`,
      newId: () => drawHex(system.secureRandom, NAME_BYTES),
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

  /** Begins to keep what is counted. */
  keepHistory(): void {
    this.#recorder.start()
  }

  closeHistory(): Promise<void> {
    return this.#recorder.close()
  }

  /** Documents in the Redis that counts. The start does not wait for it. */
  #redisDocuments(): DocumentTable {
    const { settings, system } = this.#parts
    const redis = settings.redis!
    const link = connectRedis(redis, system.sleep)
    this.#redis = link
    const documents = link.then((connected) => redisDocuments(connected, redis.prefix))
    return {
      get: async (name) => (await documents).get(name),
      put: async (name, body, revision) => (await documents).put(name, body, revision),
    }
  }

  /** Before alerts are opened there is nothing to count. */
  #alertReadings(): Pick<ProcessReadings, 'firingAlerts' | 'webhookCounts'> {
    return {
      firingAlerts: () => this.#alerts?.firingCount() ?? 0,
      webhookCounts: () => this.#alerts?.webhookCounts() ?? NO_WEBHOOKS,
    }
  }
}
