import type { Rule } from '@sluice/core'
import { LONG_WINDOW } from './fault-trial.test.support.ts'

export const LOCAL_LIMIT = 100

/** What the nodes share. */
export const LOCAL_RULE: Rule = {
  algorithm: 'fixed-window',
  limit: LOCAL_LIMIT,
  window: LONG_WINDOW,
  failureMode: 'local',
}

/**
 * An order for a node: check a key repeatedly, read what remains of it, refund what was admitted without Redis, only
 * report, or close the store and end.
 */
export type NodeOrder =
  | { readonly do: 'check'; readonly key: string; readonly times: number }
  | { readonly do: 'peek'; readonly key: string }
  | { readonly do: 'refund' }
  | { readonly do: 'report' }
  | { readonly do: 'leave' }

/** What a node reports. */
export interface NodeAnswer {
  readonly admitted: number
  /** Answers that were not the store's. */
  readonly fellBack: number
  /** Nodes that it knows of, itself included. */
  readonly nodes: number
}
