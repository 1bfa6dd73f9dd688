import type { Alert, DeadLetter } from '@sluice/contract'

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
