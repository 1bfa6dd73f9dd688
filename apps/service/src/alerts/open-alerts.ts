import type { DocumentTable } from '@sluice/config-store'
import type { Alert } from '@sluice/contract'
import type { DeliveryCounts, Logger, NowMs, Random, Sleep } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { WebhookCounts } from '../observability/metrics/process-metrics.ts'
import type { MainThread } from '../threads/message-bus.ts'
import { AlertMonitor } from './alert-monitor.ts'
import type { AlertRule, Coordinator, SharedParts } from './alert-rule.ts'
import { rulesThrough } from './alert-rule.ts'
import type { SignalMessages, SignalSnapshot } from './alert-signals.ts'
import { mergeSignals } from './alert-signals.ts'
import type { AlertMessages, Alerts } from './alerts.ts'
import { shareAlerts } from './alerts.ts'
import type { BlockMessages } from './block-export.ts'
import { BlockExport } from './block-export.ts'
import type { ClusterAlertsParts, ClusterCopyStore } from './cluster-alerts.ts'
import { ClusterAlerts } from './cluster-alerts.ts'
import type { ClusterState } from './cluster-state.ts'
import { sharedDocument } from './cluster-state.ts'
import { alertStateStore, deliveryFileStore, StateFile } from './state-file.ts'
import type { WebhookDelivery } from './webhook.ts'
import { webhooksOf } from './webhook.ts'
import type { WebhookChannelParts, WebhookMessage } from './webhook-channel.ts'
import { WebhookChannel } from './webhook-channel.ts'

/** What the alerts of a process are made of. */
export interface AlertParts {
  /** What is watched: the same as in {@link threadSignals} of every thread. */
  readonly rules: readonly AlertRule[]
  /** What nodes share, which says which alerts are about all of them. */
  readonly shared: SharedParts
  /** Where nodes coordinate; only asked for what they share. */
  readonly documents: Readonly<Record<Coordinator, () => DocumentTable>>
  /** See {@link AlertMonitorParts}. */
  readonly remindEveryMs: number
  readonly node: string
  readonly newId: () => string
  /** Where notices are sent: addresses of http and https. They are only listed when there is none. */
  readonly webhooks: readonly string[]
  /** Where changes of blocks are sent. */
  readonly blockWebhooks: readonly string[]
  readonly delivery: WebhookDelivery
  /** The file that alerts survive a restart in. */
  readonly path: string
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly random: Random
  readonly log: Logger
  readonly threads: MainThread<AlertMessages & SignalMessages & BlockMessages>
  /** See {@link WebhookChannelParts}. */
  readonly tracing: WebhookChannelParts['tracing']
}

/** The alerts of a process, being watched. */
export interface OpenAlerts extends Alerts {
  /** Number of alerts that fire. */
  firingCount(): number
  webhookCounts(): WebhookCounts
  /** Watches no more, ends tries that are under way, and saves. What is not delivered is after the next start. */
  close(): Promise<void>
}

/** Begins to watch, in the main thread, and lets the other threads reach it. */
export async function openAlerts(parts: AlertParts): Promise<OpenAlerts> {
  const { rules, remindEveryMs, node, newId, nowMs, sleep, random, log, threads, tracing } = parts
  const webhooks = webhooksOf(parts.webhooks, parts.delivery)
  const file = await StateFile.open(parts.path, (asidePath) =>
    log.error('the file of alerts is damaged, and was put aside', { asidePath }),
  )
  const store = deliveryFileStore<WebhookMessage>(file)
  const channel = await WebhookChannel.open({ webhooks, nowMs, sleep, random, log, store, tracing })
  // A queue of their own: an attack makes many blocks, and alerts must not wait behind them. They do not survive a restart.
  const blockChannel = await WebhookChannel.open({
    webhooks: webhooksOf(parts.blockWebhooks, parts.delivery),
    ...{ nowMs, sleep, random, log, tracing },
    mostPending: MOST_BLOCK_CHANGES,
  })
  const blocks = new BlockExport({ send: (notice) => blockChannel.send(notice), newId, nowMs, log })
  blocks.share(threads)
  const common = { remindEveryMs, nowMs, newId, channel, log }
  const monitor = new AlertMonitor({
    ...common,
    node,
    rules: rulesThrough(undefined, rules, parts.shared),
    store: alertStateStore(file),
  })
  const clusters = await openClusters(parts, file, common)
  const alerts = { ...allAlerts(monitor, clusters), ...allLetters(monitor, blockChannel) }
  const evaluate = (signals: SignalSnapshot): void => {
    monitor.evaluate(signals)
    for (const cluster of clusters) cluster.evaluate(signals)
  }
  const loop = new AlertLoop({
    monitor: { evaluate },
    gather: async () => (await threads.gather('alerts.signals')).replies,
    sleep,
    log,
  })
  shareAlerts(threads, alerts)
  return {
    ...alerts,
    firingCount: () => alerts.list().filter(({ state }) => state === 'firing').length,
    webhookCounts: () => {
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
    },
    async close() {
      await loop.close()
      await monitor.settled()
      await Promise.all(clusters.map((cluster) => cluster.settled()))
      await Promise.all([channel.close(), blockChannel.close()])
    },
  }
}

/** Changes of blocks that wait for delivery. */
const MOST_BLOCK_CHANGES = 10_000

const COORDINATORS: readonly Coordinator[] = ['database', 'redis']

/** The alerts that are about what nodes share, by what they are coordinated through. */
async function openClusters(
  { rules, shared, node, documents, sleep }: AlertParts,
  file: StateFile,
  common: Pick<ClusterAlertsParts, 'remindEveryMs' | 'nowMs' | 'newId' | 'channel' | 'log'>,
): Promise<readonly ClusterAlerts[]> {
  const groups = COORDINATORS.map((coordinator) => ({ coordinator, own: rulesThrough(coordinator, rules, shared) }))
  const used = groups.filter(({ own }) => own.length > 0)
  if (used.length === 0) return []
  const nodeId = await nodeIdIn(file, common.newId)
  return used.map(({ coordinator, own }) => {
    const document = sharedDocument(documents[coordinator](), documentName(shared), sleep)
    const copy = clusterCopyStore(file, coordinator)
    return new ClusterAlerts({ ...common, rules: own, nodeId, nodeName: node, document, copy })
  })
}

/** Nodes that count in one database but under several prefixes of Redis are several clusters. */
function documentName({ redis }: SharedParts): string {
  return redis === undefined ? 'alerts' : `alerts:${redis.prefix}`
}

/** The id of this node: made once, and the same as long as its file is there. */
async function nodeIdIn(file: StateFile, newId: () => string): Promise<string> {
  const kept = file.get('node') as string | undefined
  if (kept !== undefined) return kept
  const id = newId()
  await file.put('node', id)
  return id
}

function clusterCopyStore(file: StateFile, coordinator: Coordinator): ClusterCopyStore {
  const part = `cluster-${coordinator}`
  return {
    // The file is ours, of this version and whole.
    load: () => file.get(part) as ClusterState | undefined,
    save: (state) => file.put(part, state),
  }
}

/** The alerts of this node and of its cluster, in one list: those that fire first, then newest first. */
function allAlerts(
  monitor: AlertMonitor,
  clusters: readonly ClusterAlerts[],
): Pick<Alerts, 'acknowledge' | 'silence'> & { readonly list: () => readonly Alert[] } {
  const rankOf = ({ state }: Alert): number => (state === 'firing' ? 0 : 1)
  const inCluster = async (
    change: (cluster: ClusterAlerts) => Promise<Alert | undefined>,
  ): Promise<Alert | undefined> => {
    for (const cluster of clusters) {
      const alert = await change(cluster)
      if (alert !== undefined) return alert
    }
    return undefined
  }
  return {
    list: () =>
      [...monitor.list(), ...clusters.flatMap((cluster) => cluster.list())].toSorted(
        (one, other) => rankOf(one) - rankOf(other) || other.firedAt - one.firedAt,
      ),
    acknowledge: (id, actor) =>
      monitor.acknowledge(id, actor) ?? inCluster((cluster) => cluster.acknowledge(id, actor)),
    silence: (id, order) => monitor.silence(id, order) ?? inCluster((cluster) => cluster.silence(id, order)),
  }
}

/** What could not be delivered, of alerts and of blocks, newest first. */
function allLetters(monitor: AlertMonitor, blocks: WebhookChannel): Pick<Alerts, 'deadLetters' | 'redeliver'> {
  return {
    deadLetters: () =>
      [...monitor.deadLetters(), ...blocks.deadLetters()].toSorted(
        (one, other) => other.lastAttemptAt - one.lastAttemptAt,
      ),
    redeliver(id) {
      const outcome = blocks.redeliver(id)
      return outcome === 'unknown' ? monitor.redeliver(id) : outcome
    },
  }
}

/** What {@link AlertLoop} works with. */
export interface AlertLoopParts {
  readonly monitor: Pick<AlertMonitor, 'evaluate'>
  /** What every thread knows. */
  readonly gather: () => Promise<readonly SignalSnapshot[]>
  readonly sleep: Sleep
  readonly log: Pick<Logger, 'error'>
}

const EVERY_MS = 1000

/** Lets a monitor look at what the threads know, once a second, from the start to `close`. */
class AlertLoop {
  readonly #parts: AlertLoopParts
  readonly #closing = new AbortController()
  readonly #running: Promise<void>

  constructor(parts: AlertLoopParts) {
    this.#parts = parts
    this.#running = this.#run()
  }

  /** Resolves when the last look is over. */
  close(): Promise<void> {
    this.#closing.abort()
    return this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await this.#look()
      await this.#parts.sleep(EVERY_MS, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
    }
  }

  async #look(): Promise<void> {
    const { monitor, gather, log } = this.#parts
    try {
      monitor.evaluate(mergeSignals(await gather()))
    } catch (error) {
      log.error('could not evaluate alerts', { error: errorFields(error) })
    }
  }
}
