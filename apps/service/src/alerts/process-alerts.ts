import type { DocumentTable } from '@sluice/config-store'
import type { Alert, DeadLetter } from '@sluice/contract'
import type { DeliveryCounts, Logger, NowMs, Random, Sleep } from '@sluice/runtime'
import { sharedDocument } from '../config/shared-document.ts'
import type { ReportExchange } from '../observability/cluster/report-exchange.ts'
import { errorFields } from '../observability/error-fields.ts'
import type { WebhookCounts } from '../observability/metrics/process-metrics.ts'
import type { MainThread } from '../thread-messages/message-bus.ts'
import { AlertMonitor } from './alert-monitor.ts'
import type { AlertActor, SilenceOrder } from './alert-record.ts'
import type { AlertRule, Coordinator, SharedParts } from './alert-rule.ts'
import { conditionsThrough, sharesNothing } from './alert-rule.ts'
import type { SignalMessages } from './alert-signals.ts'
import { mergeSignals } from './alert-signals.ts'
import type { BlockMessages } from './block-export.ts'
import { BlockExport } from './block-export.ts'
import type { ClusterAlertsParts } from './cluster-alerts.ts'
import { ClusterAlerts } from './cluster-alerts.ts'
import { SharedSignals } from './shared-signals.ts'
import { StateFile } from './state-file.ts'
import type { RedeliverOutcome, WebhookChannelParts } from './webhook-channel.ts'
import { WebhookChannel } from './webhook-channel.ts'
import type { WebhookDelivery } from './webhook-request.ts'
import { webhooksOf } from './webhook-request.ts'

/** Messages about alerts, to the main thread. Payloads and replies are plain data. */
export interface AlertMessages {
  /** Firing alerts first, then resolved ones; newest first. `own`: without those of other nodes. */
  'alerts.list': (only?: 'own') => readonly Alert[]
  /** Acknowledges an alert; replaces an earlier acknowledgement. Undefined if there is no such alert. */
  'alerts.acknowledge': (id: string, actor: AlertActor) => Alert | undefined
  /** Silences the condition of an alert, including later alerts of it. Undefined if there is no such alert. */
  'alerts.silence': (id: string, order: SilenceOrder) => Alert | undefined
  /** Webhook messages that could not be delivered, newest first. */
  'alerts.deadLetters': () => readonly DeadLetter[]
  /** Queues a dead letter again. */
  'alerts.redeliver': (id: string) => RedeliverOutcome
}

/** What {@link openAlerts} needs. */
export interface AlertParts {
  /** The same as in {@link threadSignals} of every thread. */
  readonly rules: readonly AlertRule[]
  /** What nodes share; decides which alerts are about the cluster. */
  readonly shared: SharedParts
  /** Tables through which nodes coordinate. Only those that `shared` requires are opened. */
  readonly documents: Readonly<Record<Coordinator, () => DocumentTable>>
  /** Where nodes publish their signals, next to the document that they coordinate through. */
  readonly exchanges: Readonly<Record<Coordinator, () => ReportExchange>>
  /** See {@link AlertMonitorParts}. */
  readonly remindEveryMs: number
  readonly node: string
  readonly newId: () => string
  /** URLs that get alerts. Without any, alerts are only listed. */
  readonly webhooks: readonly string[]
  /** URLs that get changes of blocks. */
  readonly blockWebhooks: readonly string[]
  readonly delivery: WebhookDelivery
  /** File in which alerts survive a restart. */
  readonly path: string
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly random: Random
  readonly log: Logger
  readonly threads: MainThread<AlertMessages & SignalMessages & BlockMessages>
  /** See {@link WebhookChannelParts}. */
  readonly tracing: WebhookChannelParts['tracing']
}

/** Maximum number of block changes that wait for delivery. */
const MAX_PENDING_BLOCK_CHANGES = 10_000

const EVALUATE_EVERY_MS = 1000

/** Starts to evaluate alerts, in the main thread, and shares them with the other threads. */
export async function openAlerts(parts: AlertParts): Promise<ProcessAlerts> {
  const { rules, shared, remindEveryMs, node, newId, nowMs, sleep, random, log, threads, tracing } = parts
  const file = await StateFile.open(parts.path, (asidePath) =>
    log.error('the alerts file is damaged and was renamed', { asidePath }),
  )
  const channel = await WebhookChannel.open({
    webhooks: webhooksOf(parts.webhooks, parts.delivery),
    ...{ nowMs, sleep, random, log, tracing },
    store: file.part('deliveries'),
  })
  // A queue of their own: an attack causes many blocks, and alerts must not wait behind them. Lost on restart.
  const blockChannel = await WebhookChannel.open({
    webhooks: webhooksOf(parts.blockWebhooks, parts.delivery),
    ...{ nowMs, sleep, random, log, tracing },
    maxPending: MAX_PENDING_BLOCK_CHANGES,
  })
  const blocks = new BlockExport({ send: (notice) => blockChannel.send(notice), newId, nowMs, log })
  blocks.share(threads)
  const common = { remindEveryMs, nowMs, newId, channel, log }
  const monitor = new AlertMonitor({
    ...common,
    node,
    rules: sharesNothing(shared) ? rules : [],
    store: file.part('monitor'),
  })
  const sharedAlerts = await openShared(parts, file, common)
  const alerts = new ProcessAlerts({
    monitor,
    shared: sharedAlerts,
    channel,
    blocks,
    blockChannel,
    sleep,
    log,
    threads,
  })
  threads.handleInMain('alerts.list', (only) => alerts.list(only))
  threads.handleInMain('alerts.acknowledge', (id, actor) => alerts.acknowledge(id, actor))
  threads.handleInMain('alerts.silence', (id, order) => alerts.silence(id, order))
  threads.handleInMain('alerts.deadLetters', () => alerts.deadLetters())
  threads.handleInMain('alerts.redeliver', (id) => alerts.redeliver(id))
  return alerts
}

const COORDINATORS: readonly Coordinator[] = ['database', 'redis']

/** The alerts that are coordinated through one storage, and the signals of all nodes if they are about these. */
interface SharedAlerts {
  readonly cluster: ClusterAlerts
  readonly signals: SharedSignals | undefined
}

/** The alerts that nodes share, for each coordinator in use. */
async function openShared(
  { rules, shared, node, documents, exchanges, sleep }: AlertParts,
  file: StateFile,
  common: Pick<ClusterAlertsParts, 'remindEveryMs' | 'nowMs' | 'newId' | 'channel' | 'log'>,
): Promise<readonly SharedAlerts[]> {
  if (sharesNothing(shared)) return []
  const nodeId = await nodeIdIn(file, common.newId)
  // Nodes that share a database but not a Redis prefix are several clusters. 2: the version of the document.
  const documentName = shared.redis === undefined ? 'alerts-2' : `alerts-2:${shared.redis.prefix}`
  return COORDINATORS.flatMap((coordinator) => {
    const conditions = conditionsThrough(coordinator, rules, { ...shared, nodeId })
    if (conditions.length === 0) return []
    const document = sharedDocument(documents[coordinator](), documentName, sleep)
    const copy = file.part(`cluster-${coordinator}`)
    const hasTotal = conditions.some(({ isOverAllNodes }) => isOverAllNodes)
    return {
      cluster: new ClusterAlerts({ ...common, conditions, nodeId, nodeName: node, document, copy }),
      signals: hasTotal ? new SharedSignals({ ...common, nodeId, exchange: exchanges[coordinator]() }) : undefined,
    }
  })
}

/** The id of this node: created once, and kept in the file. */
async function nodeIdIn(file: StateFile, newId: () => string): Promise<string> {
  const part = file.part('node')
  const kept = part.load()
  if (kept !== undefined) return kept
  const id = newId()
  await part.save(id)
  return id
}

interface ProcessAlertsParts extends Pick<AlertParts, 'sleep' | 'log'> {
  readonly monitor: AlertMonitor
  readonly shared: readonly SharedAlerts[]
  readonly channel: WebhookChannel
  readonly blocks: BlockExport
  readonly blockChannel: WebhookChannel
  readonly threads: Pick<MainThread<SignalMessages>, 'gather'>
}

/**
 * The alerts of this process: its own, or those that it shares with other nodes. Evaluates them once a second until
 * `close`.
 */
export class ProcessAlerts {
  readonly #parts: ProcessAlertsParts
  readonly #closing = new AbortController()
  readonly #running: Promise<void>

  constructor(parts: ProcessAlertsParts) {
    this.#parts = parts
    this.#running = this.#run()
  }

  /** See {@link AlertMessages}. */
  list(only?: 'own'): readonly Alert[] {
    const { monitor, shared } = this.#parts
    const rankOf = ({ state }: Alert): number => (state === 'firing' ? 0 : 1)
    const all = [...monitor.list(), ...shared.flatMap(({ cluster }) => cluster.list(only))]
    return all.toSorted((one, other) => rankOf(one) - rankOf(other) || other.firedAt - one.firedAt)
  }

  async acknowledge(id: string, actor: AlertActor): Promise<Alert | undefined> {
    const { monitor } = this.#parts
    return monitor.acknowledge(id, actor) ?? (await this.#inCluster((cluster) => cluster.acknowledge(id, actor)))
  }

  async silence(id: string, order: SilenceOrder): Promise<Alert | undefined> {
    const { monitor } = this.#parts
    return monitor.silence(id, order) ?? (await this.#inCluster((cluster) => cluster.silence(id, order)))
  }

  deadLetters(): readonly DeadLetter[] {
    const { channel, blockChannel } = this.#parts
    const all = [...channel.deadLetters(), ...blockChannel.deadLetters()]
    return all.toSorted((one, other) => other.lastAttemptAt - one.lastAttemptAt)
  }

  redeliver(id: string): RedeliverOutcome {
    const outcome = this.#parts.blockChannel.redeliver(id)
    return outcome === 'unknown' ? this.#parts.channel.redeliver(id) : outcome
  }

  /** Number of alerts that fire, of the cluster and of this node. */
  firingCount(): number {
    return this.list('own').filter(({ state }) => state === 'firing').length
  }

  webhookCounts(): WebhookCounts {
    const { monitor, blocks, channel, blockChannel } = this.#parts
    const [ofAlerts, ofBlocks] = [channel.counts(), blockChannel.counts()]
    const sum = (name: keyof DeliveryCounts): number => ofAlerts[name] + ofBlocks[name]
    return {
      pending: sum('pending'),
      dead: sum('dead'),
      delivered: sum('delivered'),
      failed: sum('failed'),
      failedTries: sum('failedTries'),
      lost: sum('deadDropped') + monitor.dropped + blocks.dropped,
    }
  }

  /** Stops evaluating, ends delivery attempts, and saves. Pending messages are delivered after the next start. */
  async close(): Promise<void> {
    const { monitor, shared, channel, blockChannel } = this.#parts
    this.#closing.abort()
    await this.#running
    await monitor.settled()
    await Promise.all(shared.map(({ signals }) => signals?.close()))
    await Promise.all(shared.map(({ cluster }) => cluster.settled()))
    await Promise.all([channel.close(), blockChannel.close()])
  }

  async #inCluster(change: (cluster: ClusterAlerts) => Promise<Alert | undefined>): Promise<Alert | undefined> {
    for (const { cluster } of this.#parts.shared) {
      const alert = await change(cluster)
      if (alert !== undefined) return alert
    }
    return undefined
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await this.#evaluate()
      await this.#parts.sleep(EVALUATE_EVERY_MS, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
    }
  }

  async #evaluate(): Promise<void> {
    const { monitor, shared, threads, log } = this.#parts
    try {
      const { replies } = await threads.gather('alerts.signals')
      const own = mergeSignals(replies)
      monitor.evaluate(own)
      for (const { cluster, signals } of shared) {
        signals?.exchange(own)
        cluster.evaluate(own, signals?.total(own))
      }
    } catch (error) {
      log.error('could not evaluate alerts', { error: errorFields(error) })
    }
  }
}
