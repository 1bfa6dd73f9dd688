import type { Infer } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import { count, flag, instant, listOf, words } from '../schema/value-schemas.ts'
import type { TopDimension, TrafficShare } from './traffic-bodies.ts'
import { TOP_DIMENSION, TRAFFIC_SHARE } from './traffic-bodies.ts'

const BREAKER = {
  description: 'State of the breaker. closed: calls go to the store. open: none do. half-open: one call probes it.',
  enum: ['closed', 'half-open', 'open'],
} as const

/** One number for each step of a range. */
function counts(description: string) {
  return { description, type: 'array', items: { type: 'integer', minimum: 0 } } as const
}

/** The same, null where nothing was measured. */
function latencies(description: string) {
  return { description, type: 'array', items: { type: ['number', 'null'], minimum: 0 } } as const
}

const NODE_STATUS = answerSchema('NodeStatus', {
  description: 'How one node stands: one process of the service.',
  examples: [
    {
      id: 'k3Jd82nWq0Zx',
      name: 'limits-1 (EU)',
      region: 'EU',
      isSelf: true,
      isLost: false,
      version: '0.4.0',
      startedAt: 1_762_337_100_000,
      uptimeMs: 900_000,
      lastSeenAt: 1_762_338_000_000,
      threads: 4,
      servingThreads: 4,
      configVersion: 12,
      configLagMs: 400,
      store: 'redis',
      breaker: 'closed',
      failureMode: 'local',
      storeP99Ms: 1.7,
      checksPerSecond: 1200,
      denialsPerSecond: 37,
      inFlight: 3,
      firingAlerts: 0,
    },
  ],
  required: {
    id: words('Names it until the process ends.'),
    name: words('Name for people: host, and region if it has one.'),
    isSelf: flag('Whether it is the node that answers.'),
    isLost: flag('Whether it is not heard of any more. It is listed for a minute, and counts in no figure.'),
    version: words('Version of the service.'),
    startedAt: instant('When it was started, by its own clock.'),
    uptimeMs: count('Milliseconds that it has been running.'),
    lastSeenAt: instant('When it was last heard of, by the clock of the node that answers.'),
    threads: count('Threads that should serve requests.'),
    servingThreads: count('Threads that do.'),
    configVersion: count('Number of the version that it enforces; 0 when none is.'),
    configLagMs: count('Milliseconds since its configuration was last known to be current.'),
    store: { description: 'Where its counters are.', enum: ['memory', 'redis'] },
    breaker: BREAKER,
    storeP99Ms: {
      description: '99th percentile of its calls to the store in the last seconds, in milliseconds.',
      type: ['number', 'null'],
      minimum: 0,
    },
    checksPerSecond: { description: 'Checks per second in the last seconds.', type: 'number', minimum: 0 },
    denialsPerSecond: { description: 'Denied checks per second in the last seconds.', type: 'number', minimum: 0 },
    inFlight: count('Requests that are being answered.'),
    firingAlerts: count('Alerts that hold on it.'),
  },
  optional: {
    region: words('Its region; absent when it has none.'),
    failureMode: words('How checks are decided without the store; absent when counters are in memory.'),
  },
})
export interface NodeStatus extends Infer<typeof NODE_STATUS> {}

export const NODES_ANSWER = answerSchema('NodesAnswer', {
  description: 'The nodes of the deployment.',
  examples: [{ at: 1_762_338_000_000, isShared: true, nodes: [NODE_STATUS.example] }],
  required: {
    at: instant('When.'),
    isShared: flag('Whether nodes share figures: with REDIS_URL or DATABASE_URL. Without, only this one is listed.'),
    nodes: listOf<NodeStatus>('This node first, then by name.', NODE_STATUS.ref),
  },
  optional: { problem: words('Why the figures of other nodes cannot be read now; absent when they can.') },
})
export interface NodesAnswer extends Infer<typeof NODES_ANSWER> {}

const TRAFFIC_SERIES = answerSchema('TrafficSeries', {
  description: 'Checks of one resource or region over time.',
  examples: [{ name: '/api/v1/data', checks: [1200, 1180], denials: [37, 12] }],
  required: {
    name: words('The resource or region; other for all that are not listed on their own.'),
    checks: counts('Checks, one number for each step.'),
    denials: counts('Denied checks, one number for each step.'),
  },
})
export interface TrafficSeries extends Infer<typeof TRAFFIC_SERIES> {}

const SHADOW_RULE_SERIES = answerSchema('ShadowRuleSeries', {
  description: 'What one rule would have denied over time.',
  examples: [{ resource: '/api/v1/data', dimension: 'user', checks: [1200, 1180], denials: [80, 75] }],
  required: {
    resource: words('Resource of the rule.'),
    dimension: words('Who it counts.'),
    checks: counts('Checks that it was measured on, one number for each step.'),
    denials: counts('Checks that it would have denied, one number for each step.'),
  },
})
export interface ShadowRuleSeries extends Infer<typeof SHADOW_RULE_SERIES> {}

export const SHADOW_SERIES = answerSchema('ShadowSeries', {
  description: 'What a version would have denied over time, beside what was denied.',
  examples: [
    {
      version: 13,
      from: 1_762_337_100_000,
      to: 1_762_337_220_000,
      stepMs: 60_000,
      at: [1_762_337_100_000, 1_762_337_160_000],
      checks: [1200, 1180],
      denials: [37, 12],
      shadowChecks: [1200, 1180],
      shadowDenials: [80, 75],
      rules: [SHADOW_RULE_SERIES.example],
    },
  ],
  required: {
    version: count('The version that was measured.'),
    from: instant('Start of the first step.'),
    to: instant('End of the range.'),
    stepMs: count('Length of each step in milliseconds.'),
    at: { description: 'Start of each step.', type: 'array', items: instant('Start of the step.') },
    checks: counts('Checks, by the rules that are enforced.'),
    denials: counts('Denied checks, by the rules that are enforced.'),
    shadowChecks: counts('Checks that the version was measured on: those that the enforced rules allowed.'),
    shadowDenials: counts('Checks that the version would have denied in addition to `denials`.'),
    rules: listOf<ShadowRuleSeries>('The rules that would have denied most, at most 20.', SHADOW_RULE_SERIES.ref),
  },
})
export interface ShadowSeries extends Infer<typeof SHADOW_SERIES> {}

const NOW_PARTS = {
  nodes: count('Nodes that the figures cover.'),
  version: count('Number of the version that is enforced; 0 when none is. With several, the lowest.'),
  configLagMs: count('Longest time in which a node could not confirm its configuration, in milliseconds.'),
  inFlight: count('Requests that are being answered.'),
  firingAlerts: count('Alerts that hold.'),
  breaker: { ...BREAKER, description: `${BREAKER.description} With several nodes, the worst.` },
} as const

const ALERT_BOUNDS = answerSchema('AlertBounds', {
  description: 'Above these values alerts fire when they last. An alert that is off has none.',
  examples: [{ denialRate: 0.2, storeLatencyMs: 10, configLagMs: 600_000 }],
  required: {},
  optional: {
    denialRate: { description: 'Share of checks that are denied.', type: 'number', minimum: 0, maximum: 1 },
    storeLatencyMs: { description: '99th percentile of calls to the store.', type: 'number', minimum: 0 },
    configLagMs: { description: 'Time since the configuration was known to be current.', type: 'number', minimum: 0 },
  },
})
export interface AlertBounds extends Infer<typeof ALERT_BOUNDS> {}

export const OVERVIEW_ANSWER = answerSchema('OverviewAnswer', {
  description: 'Traffic of a range in aligned series: every list has one number for each step, oldest first.',
  examples: [
    {
      from: 1_762_337_100_000,
      to: 1_762_337_220_000,
      stepMs: 60_000,
      at: [1_762_337_100_000, 1_762_337_160_000],
      checks: [1200, 1180],
      denials: [37, 12],
      withoutStore: [0, 0],
      storeErrors: [0, 0],
      storeP50Ms: [0.3, null],
      storeP99Ms: [1.7, null],
      resources: [TRAFFIC_SERIES.example],
      regions: [{ name: 'EU', checks: [1200, 1180], denials: [37, 12] }],
      shadowChecks: [1200, 1180],
      shadowDenials: [80, 75],
      candidate: 13,
      nodes: 2,
      version: 12,
      configLagMs: 400,
      inFlight: 3,
      firingAlerts: 0,
      breaker: 'closed',
      failureMode: 'local',
      alertBounds: ALERT_BOUNDS.example,
      top: [TOP_DIMENSION.example],
      topSpanMs: 600_000,
    },
  ],
  required: {
    from: instant('Start of the first step.'),
    to: instant('End of the range.'),
    stepMs: count('Length of each step in milliseconds.'),
    at: { description: 'Start of each step.', type: 'array', items: instant('Start of the step.') },
    checks: counts('Checks.'),
    denials: counts('Denied checks.'),
    withoutStore: counts('Checks that were decided without the store.'),
    storeErrors: counts('Calls to the store that failed.'),
    storeP50Ms: latencies('Median duration of calls to the store, in milliseconds.'),
    storeP99Ms: latencies('99th percentile of the duration of calls to the store, in milliseconds.'),
    resources: listOf<TrafficSeries>('The resources with most denials, then checks, and other.', TRAFFIC_SERIES.ref),
    regions: listOf<TrafficSeries>('The regions with most checks, and other.', TRAFFIC_SERIES.ref),
    shadowChecks: counts('Checks that the candidate version was measured on: those that were allowed.'),
    shadowDenials: counts('Checks that the candidate version would have denied in addition to `denials`.'),
    ...NOW_PARTS,
    alertBounds: ALERT_BOUNDS.ref,
    top: listOf<TopDimension>('The callers that were denied most in the last minutes.', TOP_DIMENSION.ref),
    topSpanMs: count('Over so much of the past the top callers were counted, in milliseconds.'),
  },
  optional: {
    candidate: count('Number of the version in stage shadow or percent; absent when there is none.'),
    failureMode: words('How checks are decided without the store; absent when counters are in memory.'),
  },
})
export interface OverviewAnswer extends Infer<typeof OVERVIEW_ANSWER> {}

export const OVERVIEW_UPDATE = answerSchema('OverviewUpdate', {
  description:
    'What came since the last update. The totals are always there. Everything else is left out while it is as in the ' +
    'update before.',
  examples: [{ at: 1_762_337_100_000, spanMs: 100, checks: 120, denials: 4, storeP99Ms: 1.7, inFlight: 3 }],
  required: {
    at: instant('When the span began.'),
    spanMs: count('Its length in milliseconds.'),
    checks: count('Checks.'),
    denials: count('Denied checks.'),
  },
  optional: {
    ...NOW_PARTS,
    withoutStore: count('Checks that were decided without the store. Default: 0.'),
    storeErrors: count('Calls to the store that failed. Default: 0.'),
    shadowChecks: count('Checks that the candidate version was measured on. Default: 0.'),
    shadowDenials: count('Checks that the candidate would have denied in addition to `denials`. Default: 0.'),
    storeP50Ms: {
      description: 'Median duration of calls to the store, in milliseconds. Absent when none was made.',
      type: 'number',
      minimum: 0,
    },
    storeP99Ms: {
      description: '99th percentile of the duration of calls to the store. Absent when none was made.',
      type: 'number',
      minimum: 0,
    },
    resources: listOf<TrafficShare>('The resources with most denials, then checks, in this span.', TRAFFIC_SHARE.ref),
    regions: listOf<TrafficShare>('The regions with most checks in this span.', TRAFFIC_SHARE.ref),
    top: listOf<TopDimension>('The callers that were denied most, at most once a second.', TOP_DIMENSION.ref),
  },
})
export interface OverviewUpdate extends Infer<typeof OVERVIEW_UPDATE> {}
