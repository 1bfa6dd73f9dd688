import type { AlertNotice } from './alert-notice.ts'
import type { AlertRecord, Silence } from './alert-record.ts'
import type { AlertRuleName } from './alert-rule.ts'

/** What a desk remembers over restarts: plain data. */
export interface AlertState {
  readonly silences: { readonly [Name in AlertRuleName]?: Silence }
  /** Oldest first. */
  readonly alerts: readonly AlertRecord[]
  /** Notices that no outlet has taken over yet, oldest first. */
  readonly outbox: readonly AlertNotice[]
}

/** Keeps the state of one desk. */
export interface AlertStateStore {
  /** What was saved last; undefined when nothing was. */
  load(): AlertState | undefined
  /** Saves it. Of several saves at once the last counts. Rejects when it could not be written. */
  save(state: AlertState): Promise<void>
}
