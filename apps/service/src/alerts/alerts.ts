import type { Alert, DeadLetter } from '@sluice/contract'
import type { MainThread, ThreadGroup } from '../threads/message-bus.ts'

/** Who changes an alert. */
export interface AlertActor {
  /** Name of the API key. */
  readonly by: string
  readonly note?: string | undefined
}

/** A silence to set. */
export interface SilenceOrder extends AlertActor {
  /** From now, in milliseconds; 0 ends the silence. */
  readonly durationMs: number
}

/** Result of a redelivery. `full`: too many messages are pending. */
export type RedeliverOutcome = 'queued' | 'unknown' | 'full' | 'closed'

/** A promise in threads other than the main thread. */
type Maybe<T> = T | Promise<T>

/** The alerts of this process, for every thread. Arguments and results are plain data. */
export interface Alerts {
  /** Firing alerts first, then resolved ones; newest first. */
  list(): Maybe<readonly Alert[]>
  /** Acknowledges an alert; replaces an earlier acknowledgement. Undefined if there is no such alert. */
  acknowledge(id: string, actor: AlertActor): Maybe<Alert | undefined>
  /** Silences the rule of an alert, including later alerts of it. Undefined if there is no such alert. */
  silence(id: string, order: SilenceOrder): Maybe<Alert | undefined>
  /** Webhook messages that could not be delivered, newest first. */
  deadLetters(): Maybe<readonly DeadLetter[]>
  /** Queues a dead letter again. */
  redeliver(id: string): Maybe<RedeliverOutcome>
}

/** Messages about alerts, to the main thread: one for each method of {@link Alerts}. */
export type AlertMessages = { [Name in keyof Alerts as `alerts.${Name}`]: Alerts[Name] }

/** Lets all threads use `alerts`. Call it once, in the main thread. */
export function shareAlerts(threads: Pick<MainThread<AlertMessages>, 'handleInMain'>, alerts: Alerts): void {
  threads.handleInMain('alerts.list', () => alerts.list())
  threads.handleInMain('alerts.acknowledge', (id, actor) => alerts.acknowledge(id, actor))
  threads.handleInMain('alerts.silence', (id, order) => alerts.silence(id, order))
  threads.handleInMain('alerts.deadLetters', () => alerts.deadLetters())
  threads.handleInMain('alerts.redeliver', (id) => alerts.redeliver(id))
}

/** The alerts of the main thread, for any thread. Calls reject if it does not reply in time. */
export function remoteAlerts(threads: Pick<ThreadGroup<AlertMessages>, 'callMain'>): Alerts {
  return {
    list: () => threads.callMain('alerts.list'),
    acknowledge: (id, actor) => threads.callMain('alerts.acknowledge', id, actor),
    silence: (id, order) => threads.callMain('alerts.silence', id, order),
    deadLetters: () => threads.callMain('alerts.deadLetters'),
    redeliver: (id) => threads.callMain('alerts.redeliver', id),
  }
}
