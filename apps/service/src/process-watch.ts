import { hostname } from 'node:os'
import type { NowMs } from '@sluice/runtime'
import { alertRules } from './alerts/alert-rule.ts'
import type { OpenAlerts } from './alerts/open-alerts.ts'
import { openAlerts } from './alerts/open-alerts.ts'
import { drawHex } from './draw-bytes.ts'
import type { DataFolder } from './limits/data-folder.ts'
import { OtlpTracing } from './observability/otlp-tracing.ts'
import { askReport, collectReports } from './observability/report-desk.ts'
import { RollupRecorder } from './observability/rollup-recorder.ts'
import type { RollupStore } from './observability/rollup-store.ts'
import type { Settings } from './settings.ts'
import type { ThreadSystem } from './thread-service.ts'
import type { MainThread } from './threads/thread-group.ts'

/** What a process is watched with. */
export interface ProcessWatchParts {
  readonly settings: Settings
  readonly system: ThreadSystem
  readonly folder: DataFolder
  readonly group: MainThread
  readonly rollups: RollupStore
  readonly nowMs: NowMs
}

const NAME_BYTES = 8
const MS_PER_SECOND = 1000

/** What is looked after once for all threads, in the main thread: one report of all, alerts, and history. */
export class ProcessWatch {
  readonly #parts: ProcessWatchParts
  readonly #recorder: RollupRecorder
  readonly #tracing: OtlpTracing | undefined
  #alerts: OpenAlerts | undefined

  constructor(parts: ProcessWatchParts) {
    this.#parts = parts
    const { settings, system, group, rollups, nowMs } = parts
    const { otlpEndpoint: endpoint, alerts } = settings
    const isTraced = endpoint !== undefined && alerts.webhooks.length > 0
    this.#tracing = isTraced ? new OtlpTracing({ ...system, endpoint }) : undefined
    const { readings, secureRandom } = system
    collectReports(group, { ...readings, startedAt: nowMs(), firingAlerts: () => this.#firing() })
    this.#recorder = new RollupRecorder({
      ...system,
      store: rollups,
      report: () => askReport(group),
      source: drawHex(secureRandom, NAME_BYTES),
    })
  }

  /** Begins to watch for what somebody should look at. */
  async openAlerts(): Promise<void> {
    const { settings, system, folder, group, nowMs } = this.#parts
    const { options, webhooks, secret } = settings.alerts
    await this.#tracing?.start()
    this.#alerts = await openAlerts({
      ...system,
      rules: alertRules(options),
      remindEveryMs: (options.remindEverySeconds ?? 0) * MS_PER_SECOND,
      node: settings.region === undefined ? hostname() : `${hostname()} (${settings.region})`,
      newId: () => drawHex(system.secureRandom, NAME_BYTES),
      webhooks,
      secret,
      path: folder.alerts,
      nowMs,
      threads: group,
      tracing: this.#tracing,
    })
  }

  async closeAlerts(): Promise<void> {
    await this.#alerts?.close()
    await this.#tracing?.close()
  }

  /** Begins to keep what is counted. */
  keepHistory(): void {
    this.#recorder.start()
  }

  closeHistory(): Promise<void> {
    return this.#recorder.close()
  }

  #firing(): number {
    const alerts = this.#alerts?.list() ?? []
    return alerts instanceof Promise ? 0 : alerts.filter(({ state }) => state === 'firing').length
  }
}
