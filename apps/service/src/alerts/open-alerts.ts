import type { DeliveryCounts, Logger, NowMs, Random, Sleep } from '@sluice/runtime'
import type { MainThread } from '../threads/thread-group.ts'
import { AlertDesk } from './alert-desk.ts'
import { AlertLoop } from './alert-loop.ts'
import type { AlertRule } from './alert-rule.ts'
import { alertStateStore } from './alert-state-store.ts'
import type { Alerts } from './alerts.ts'
import { deliveryFileStore } from './delivery-file-store.ts'
import { shareAlerts } from './remote-alerts.ts'
import { StateFile } from './state-file.ts'
import { gatherSignals } from './thread-signals.ts'
import { webhooksOf } from './webhook.ts'
import type { AlertMessage, WebhookOutletParts } from './webhook-outlet.ts'
import { WebhookOutlet } from './webhook-outlet.ts'

/** What the alerts of a process are made of. */
export interface AlertParts {
  /** What is watched: the same as in {@link threadSignals} of every thread. */
  readonly rules: readonly AlertRule[]
  /** See {@link AlertDeskParts}. */
  readonly remindEveryMs: number
  readonly node: string
  readonly newId: () => string
  /** Where notices are sent: addresses of http and https. They are only listed when there is none. */
  readonly webhooks: readonly string[]
  /** Signs what is sent; undefined when it is not signed. */
  readonly secret: string | undefined
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

/** The alerts of a process, being watched. */
export interface OpenAlerts extends Alerts {
  /** How many alerts hold. */
  firingCount(): number
  /** How many messages are on their way, and what became of those before. */
  deliveryCounts(): DeliveryCounts
  /** Watches no more, ends tries that are under way, and saves. What is not delivered is after the next start. */
  close(): Promise<void>
}

/** Begins to watch, in the main thread, and lets the other threads reach it. */
export async function openAlerts(parts: AlertParts): Promise<OpenAlerts> {
  const { rules, remindEveryMs, node, newId, nowMs, sleep, random, log, threads, tracing } = parts
  const webhooks = webhooksOf(parts.webhooks, parts.secret)
  const file = await StateFile.open(parts.path, (asidePath) =>
    log.error('the file of alerts is damaged, and was put aside', { asidePath }),
  )
  const store = deliveryFileStore<AlertMessage>(file)
  const outlet = await WebhookOutlet.open({ webhooks, nowMs, sleep, random, log, store, tracing })
  const desk = new AlertDesk({ rules, remindEveryMs, node, nowMs, newId, outlet, log, store: alertStateStore(file) })
  const loop = new AlertLoop({ desk, gather: () => gatherSignals(threads), sleep, log })
  shareAlerts(threads, desk)
  return {
    list: () => desk.list(),
    acknowledge: (id, actor) => desk.acknowledge(id, actor),
    silence: (id, order) => desk.silence(id, order),
    deadLetters: () => desk.deadLetters(),
    redeliver: (id) => desk.redeliver(id),
    firingCount: () => desk.list().filter(({ state }) => state === 'firing').length,
    deliveryCounts: () => outlet.counts(),
    async close() {
      await loop.close()
      await desk.settled()
      await outlet.close()
    },
  }
}
