import type { Dimension } from '@sluice/contract'
import type { GcraRule } from '@sluice/core'

/** A rule that the service applies: its name, who is counted, and how much each may do. */
export interface NamedRule {
  readonly name: string
  readonly dimension: Dimension
  readonly rule: GcraRule & { readonly limit: number; readonly window: string }
}

/** What applies while no other rule is set: 100 calls a minute for each user, over all resources. */
export const DEFAULT_RULE: NamedRule = {
  name: 'default',
  dimension: 'user',
  rule: { algorithm: 'gcra', limit: 100, window: '1m' },
}
