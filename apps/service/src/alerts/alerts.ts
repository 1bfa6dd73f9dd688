import type { Alert, DeadLetter } from '@sluice/contract'
import type { MainThread, ThreadGroup } from '../threads/message-bus.ts'
import type { AlertNotice } from './alert-record.ts'

/** Who asks for something to be done to an alert. */
export interface AlertActor {
  /** Name of the API key. */
  readonly by: string
  readonly note?: string | undefined
}

/** What is asked to be quiet. */
export interface SilenceOrder extends AlertActor {
  /** From now on, in milliseconds; 0 ends a silence. */
  readonly durationMs: number
}

/** What became of the wish to have a message delivered again. */
export type RedeliverOutcome = 'queued' | 'unknown' | 'full' | 'closed'

/** Now, or later when it is in another thread. */
type Now<T> = T | Promise<T>

/** The alerts of this process, as every thread can reach them: arguments and answers are plain data. */
export interface Alerts {
  /** Those that hold first, then those that held, newest first. */
  list(): Now<readonly Alert[]>
  /** Notes that somebody looks after an alert, in the place of who did before; undefined when there is no such alert. */
  acknowledge(id: string, actor: AlertActor): Now<Alert | undefined>
  /** Keeps the rule of an alert quiet, also when it fires anew meanwhile; undefined when there is no such alert. */
  silence(id: string, order: SilenceOrder): Now<Alert | undefined>
  /** Messages that could not be delivered, newest first. */
  deadLetters(): Now<readonly DeadLetter[]>
  /** Has a message delivered that could not be before. */
  redeliver(id: string): Now<RedeliverOutcome>
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

/** Where notices go out. */
export interface AlertChannel {
  /**
   * Takes a notice over, to be delivered to every receiver. Resolves to false when it cannot take it now: it is to be given
   * again. One that is given again is not delivered twice while it is still on its way. Never rejects.
   */
  send(notice: AlertNotice): Promise<boolean>
  /** Whether a notice that was taken over is still to be delivered to a receiver: neither delivered nor given up. */
  isPending(noticeId: string): boolean
  /** What could not be delivered, newest first. */
  deadLetters(): readonly DeadLetter[]
  /** Tries one of them again. */
  redeliver(id: string): RedeliverOutcome
}
