import type { DocumentTable } from '@sluice/config-store'
import type { Alert } from '@sluice/contract'
import type { DeliveryCounts, Logger, NowMs, Random, Sleep } from '@sluice/runtime'
import type { MainThread } from '../threads/thread-group.ts'
import { AlertLoop } from './alert-loop.ts'
import { AlertDesk } from './alert-monitor.ts'
import type { AlertRule } from './alert-rule.ts'
import type { Coordinator, SharedParts } from './alert-scope.ts'
import { rulesThrough } from './alert-scope.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { alertStateStore } from './alert-state-store.ts'
import type { Alerts } from './alerts.ts'
import { BlockExport } from './block-export.ts'
import type { ClusterAlertsParts, ClusterCopyStore } from './cluster-alerts.ts'
import { ClusterAlerts } from './cluster-alerts.ts'
import type { ClusterState } from './cluster-state.ts'
import { deliveryFileStore } from './delivery-file-store.ts'
import { shareAlerts } from './remote-alerts.ts'
import { sharedDocument } from './shared-document.ts'
import { StateFile } from './state-file.ts'
import { gatherSignals } from './thread-signals.ts'
import type { WebhookDelivery } from './webhook.ts'
import { webhooksOf } from './webhook.ts'
import type { WebhookMessage, WebhookOutletParts } from './webhook-channel.ts'
import { WebhookOutlet } from './webhook-channel.ts'

/** What the alerts of a process are made of. */
export interface AlertParts {
  /** What is watched: the same as in {@link threadSignals} of every thread. */
  readonly rules: readonly AlertRule[]
  /** What nodes share, which says which alerts are about all of them. */
  readonly shared: SharedParts
  /** Where nodes coordinate; only asked for what they share. */
  readonly documents: Readonly<Record<Coordinator, () => DocumentTable>>
  /** See {@link AlertDeskParts}. */
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
  readonly threads: MainThread
  /** See {@link WebhookOutletParts}. */
  readonly tracing: WebhookOutletParts['tracing']
}

/** Webhook messages of a process, for its metrics. */
export interface WebhookCounts
  extends Pick<DeliveryCounts, 'pending' | 'dead' | 'delivered' | 'failed' | 'failedTries'> {
  /** Messages that were dropped for lack of room: not delivered, and no dead letter either. */
  readonly lost: number
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
  const outlet = await WebhookOutlet.open({ webhooks, nowMs, sleep, random, log, store, tracing })
  // A queue of their own: an attack makes many blocks, and alerts must not wait behind them. They do not survive a restart.
  const blockOutlet = await WebhookOutlet.open({
    webhooks: webhooksOf(parts.blockWebhooks, parts.delivery),
    ...{ nowMs, sleep, random, log, tracing },
    mostPending: MOST_BLOCK_CHANGES,
  })
  const blocks = new BlockExport({ send: (notice) => blockOutlet.send(notice), newId, nowMs, log })
  blocks.share(threads)
  const common = { remindEveryMs, nowMs, newId, outlet, log }
  const desk = new AlertDesk({
    ...common,
    node,
    rules: rulesThrough(undefined, rules, parts.shared),
    store: alertStateStore(file),
  })
  const clusters = await openClusters(parts, file, common)
  const alerts = { ...allAlerts(desk, clusters), ...allLetters(desk, blockOutlet) }
  const evaluate = (signals: SignalSnapshot): void => {
    desk.evaluate(signals)
    for (const cluster of clusters) cluster.evaluate(signals)
  }
  const loop = new AlertLoop({ desk: { evaluate }, gather: () => gatherSignals(threads), sleep, log })
  shareAlerts(threads, alerts)
  return {
    ...alerts,
    firingCount: () => alerts.list().filter(({ state }) => state === 'firing').length,
    webhookCounts: () => {
      const [ofAlerts, ofBlocks] = [outlet.counts(), blockOutlet.counts()]
      const sum = (name: keyof DeliveryCounts): number => ofAlerts[name] + ofBlocks[name]
      return {
        pending: sum('pending'),
        dead: sum('dead'),
        delivered: sum('delivered'),
        failed: sum('failed'),
        failedTries: sum('failedTries'),
        lost: sum('deadDropped') + desk.dropped + blocks.dropped,
      }
    },
    async close() {
      await loop.close()
      await desk.settled()
      await Promise.all(clusters.map((cluster) => cluster.settled()))
      await Promise.all([outlet.close(), blockOutlet.close()])
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
  common: Pick<ClusterAlertsParts, 'remindEveryMs' | 'nowMs' | 'newId' | 'outlet' | 'log'>,
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
  desk: AlertDesk,
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
      [...desk.list(), ...clusters.flatMap((cluster) => cluster.list())].toSorted(
        (one, other) => rankOf(one) - rankOf(other) || other.firedAt - one.firedAt,
      ),
    acknowledge: (id, actor) => desk.acknowledge(id, actor) ?? inCluster((cluster) => cluster.acknowledge(id, actor)),
    silence: (id, order) => desk.silence(id, order) ?? inCluster((cluster) => cluster.silence(id, order)),
  }
}

/** What could not be delivered, of alerts and of blocks, newest first. */
function allLetters(desk: AlertDesk, blocks: WebhookOutlet): Pick<Alerts, 'deadLetters' | 'redeliver'> {
  return {
    deadLetters: () =>
      [...desk.deadLetters(), ...blocks.deadLetters()].toSorted(
        (one, other) => other.lastAttemptAt - one.lastAttemptAt,
      ),
    redeliver(id) {
      const outcome = blocks.redeliver(id)
      return outcome === 'unknown' ? desk.redeliver(id) : outcome
    },
  }
}
