import type { ConfigFollower, ConfigStats, ConfigStore } from '@sluice/config-store'
import type { CallReport, ReadinessCheck, ReadinessReason } from '@sluice/contract'
import type { Clock, Store } from '@sluice/core'
import type { PolicyEngine } from '@sluice/core/policy'
import type { Logger, MetricRegistry, Random, Sleep } from '@sluice/runtime'
import type { SignalMessages } from './alerts/alert-signals.ts'
import type { BlockMessages } from './alerts/block-export.ts'
import type { AlertMessages } from './alerts/process-alerts.ts'
import type { SessionMessages } from './auth/session-registry.ts'
import type { FollowMessages } from './config/follow-changes.ts'
import type { ClusterMessages } from './observability/cluster/cluster-view.ts'
import type { ClusterDecisionMessages } from './observability/cluster/process-cluster.ts'
import type { DecisionMessages, DecisionSample } from './observability/decision-sample.ts'
import type { GatewayMessages } from './observability/gateway-status.ts'
import type { ReportMessages } from './observability/metrics-aggregator.ts'
import type { ReservationMessages } from './reservations/reservations.ts'
import type { Settings } from './settings/settings.ts'
import type { ThreadGroup } from './thread-messages/message-bus.ts'

/** All messages between the threads of a process. */
export interface ServiceMessages
  extends AlertMessages,
    SignalMessages,
    BlockMessages,
    FollowMessages,
    ReportMessages,
    DecisionMessages,
    ClusterMessages,
    ClusterDecisionMessages,
    ReservationMessages,
    GatewayMessages,
    SessionMessages,
    CallReportMessages {
  /** The configuration of each thread: version, source and age. */
  'config.stats': () => ConfigStats
  /** What is wrong in each thread. A thread that is starting waits for its store for a moment. */
  'readiness.reasons': () => readonly ReadinessReason[]
  /** Whether all threads serve requests, from the main thread. */
  'threads.health': () => ReadinessCheck & { readonly reasons?: readonly ReadinessReason[] }
}

/** Messages about how calls ended. */
export interface CallReportMessages {
  /** `countedBy`: number of the thread that has counted them already. */
  'calls.reported': (countedBy: number, reports: readonly CallReport[]) => void
}

/** What operations and listeners work with. Each thread has one. */
export interface ServiceContext {
  readonly settings: Settings
  readonly clock: Clock
  readonly sleep: Sleep
  readonly random: Random
  /** Where counters live. */
  readonly store: Store
  /** Applies the active rules. */
  readonly engine: PolicyEngine
  /** Configuration database; undefined if rules come from a file, which the API cannot change. */
  readonly config: ConfigStore | undefined
  /** Keeps the engine up to date. */
  readonly follower: ConfigFollower
  readonly metrics: MetricRegistry
  readonly log: Logger
  /**
   * Signs what clients send back unchanged, such as reservation ids; 32 bytes, the same on all nodes. If the database
   * was unreachable at the start, the bytes change once it is reachable: read them at each use.
   */
  readonly secret: Uint8Array
  /** Creates a unique id for a decision. Undefined while this node has no machine number. */
  readonly nextId: () => string | undefined
  readonly threads: ThreadGroup<ServiceMessages>
  /** The sample of recent decisions. Default: none is kept. */
  readonly decisions?: DecisionSample
}
