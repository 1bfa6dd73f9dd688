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

const TOPIC = 'alerts'

/** A call of {@link Alerts}, as it goes from thread to thread. */
type AlertCommand =
  | { readonly call: 'list' | 'deadLetters' }
  | { readonly call: 'acknowledge'; readonly id: string; readonly actor: AlertActor }
  | { readonly call: 'silence'; readonly id: string; readonly order: SilenceOrder }
  | { readonly call: 'redeliver'; readonly id: string }

/** Lets all threads reach `alerts`, which is in the main thread. To be called there, once. */
export function shareAlerts(threads: Pick<MainThread, 'answerForAll'>, alerts: Alerts): void {
  // Only `remoteAlerts` asks on this topic.
  threads.answerForAll(TOPIC, (command) => perform(alerts, command as AlertCommand))
}

/** The alerts that the main thread shares. Calls reject when it does not answer. */
export function remoteAlerts(threads: Pick<ThreadGroup, 'askMain'>): Alerts {
  const ask = <T>(command: AlertCommand): Promise<T> => threads.askMain<T>(TOPIC, command)
  return {
    list: () => ask({ call: 'list' }),
    acknowledge: (id, actor) => ask({ call: 'acknowledge', id, actor }),
    silence: (id, order) => ask({ call: 'silence', id, order }),
    deadLetters: () => ask({ call: 'deadLetters' }),
    redeliver: (id) => ask({ call: 'redeliver', id }),
  }
}

function perform(alerts: Alerts, command: AlertCommand): unknown {
  switch (command.call) {
    case 'list':
      return alerts.list()
    case 'deadLetters':
      return alerts.deadLetters()
    case 'acknowledge':
      return alerts.acknowledge(command.id, command.actor)
    case 'silence':
      return alerts.silence(command.id, command.order)
    case 'redeliver':
      return alerts.redeliver(command.id)
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
