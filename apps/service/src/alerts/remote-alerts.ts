import type { MainThread, ThreadGroup } from '../threads/thread-group.ts'
import type { AlertActor, Alerts, SilenceOrder } from './alerts.ts'

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
