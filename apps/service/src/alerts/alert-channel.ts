import type { DeadLetter } from '@sluice/contract'
import type { AlertNotice } from './alert-notice.ts'
import type { RedeliverOutcome } from './alerts.ts'

/** Where notices go out. */
export interface AlertOutlet {
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
