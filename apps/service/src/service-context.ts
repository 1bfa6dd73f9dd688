import type { ConfigFollower, ConfigStore } from '@sluice/config-store'
import type { Clock, Store } from '@sluice/core'
import type { PolicyEngine } from '@sluice/core/policy'
import type { Logger, MetricRegistry, Random, Sleep } from '@sluice/runtime'
import type { Settings } from './settings.ts'
import type { ThreadGroup } from './threads/message-bus.ts'

/** What the doors of the service work with: one for each thread. */
export interface ServiceContext {
  readonly settings: Settings
  readonly clock: Clock
  readonly sleep: Sleep
  readonly random: Random
  /** Where counters live. */
  readonly store: Store
  /** Applies the rules that are in force. */
  readonly engine: PolicyEngine
  /** Where configuration is kept; undefined when rules come from a file, which only its owner changes. */
  readonly config: ConfigStore | undefined
  /** Keeps the engine up to date. */
  readonly follower: ConfigFollower
  readonly metrics: MetricRegistry
  readonly log: Logger
  /**
   * Signs what is handed out and must come back as it was, such as reservations; 32 bytes, the same on all nodes. When the
   * database could not be reached at the start its bytes change once, when it is: read them at each use.
   */
  readonly secret: Uint8Array
  /** Unique ids: one decision, one id. Undefined while this node has no number of its own to make them from. */
  readonly nextId: () => string | undefined
  /** All threads that answer requests, this one among them. */
  readonly threads: ThreadGroup
}
