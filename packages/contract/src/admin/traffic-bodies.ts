import type { Infer } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import { count, instant, listOf, words } from '../schema/value-schemas.ts'

const LATENCY = { type: ['number', 'null'], minimum: 0 } as const

export const TRAFFIC_SHARE = answerSchema('TrafficShare', {
  description: 'Checks of one resource or region in a span of time.',
  examples: [{ name: '/api/v1/data', checks: 1200, denials: 37 }],
  required: {
    name: words('The resource or region; other for all that are not listed on their own.'),
    checks: count('Checks.'),
    denials: count('Denied checks.'),
  },
})
export interface TrafficShare extends Infer<typeof TRAFFIC_SHARE> {}

const POINT_PARTS = {
  at: instant('When the span began.'),
  spanMs: count('Its length in milliseconds.'),
  checks: count('Checks.'),
  denials: count('Denied checks.'),
  withoutStore: count('Those that were decided without the store.'),
  storeErrors: count('Calls to the store that failed.'),
  storeP50Ms: {
    description: 'Median duration of calls to the store, in milliseconds.',
    ...LATENCY,
  },
  storeP99Ms: {
    description: '99th percentile of the duration of calls to the store, in milliseconds.',
    ...LATENCY,
  },
  resources: listOf<TrafficShare>('The resources with most checks.', TRAFFIC_SHARE.ref),
  regions: listOf<TrafficShare>('The regions with most checks.', TRAFFIC_SHARE.ref),
} as const

const TRAFFIC_POINT = answerSchema('TrafficPoint', {
  description: 'What happened in a span of time.',
  examples: [
    {
      at: 1_762_337_100_000,
      spanMs: 1000,
      checks: 1200,
      denials: 37,
      withoutStore: 0,
      storeErrors: 0,
      storeP50Ms: 0.3,
      storeP99Ms: 1.7,
      resources: [TRAFFIC_SHARE.example],
      regions: [{ name: 'EU', checks: 1200, denials: 37 }],
    },
  ],
  required: POINT_PARTS,
})
export interface TrafficPoint extends Infer<typeof TRAFFIC_POINT> {}

export const HISTORY_ANSWER = answerSchema('HistoryAnswer', {
  description: 'What happened over a longer time.',
  examples: [{ stepMs: 60_000, points: [{ ...TRAFFIC_POINT.example, spanMs: 60_000 }] }],
  required: {
    stepMs: count('Length of the span of each point in milliseconds.'),
    points: listOf<TrafficPoint>('Oldest first; spans in which nothing happened are left out.', TRAFFIC_POINT.ref),
  },
})
export interface HistoryAnswer extends Infer<typeof HISTORY_ANSWER> {}

const TOP_ENTRY = answerSchema('TopEntry', {
  description: 'One of the callers that were denied most.',
  examples: [{ entity: 'user-123', denials: 411, error: 3 }],
  required: {
    entity: words('The caller.'),
    denials: count('Denials: at most this many, and up to "error" fewer.'),
    error: count('How much too high that may be.'),
  },
})
export interface TopEntry extends Infer<typeof TOP_ENTRY> {}

export const TOP_DIMENSION = answerSchema('TopDimension', {
  description: 'The callers of one dimension that were denied most.',
  examples: [{ dimension: 'user', entries: [TOP_ENTRY.example] }],
  required: {
    dimension: words('What kind of caller.'),
    entries: listOf<TopEntry>('Most denied first.', TOP_ENTRY.ref),
  },
})
export interface TopDimension extends Infer<typeof TOP_DIMENSION> {}

export const LIVE_SAMPLE = answerSchema('LiveSample', {
  description: 'What happens now: the data of each event.',
  examples: [
    {
      ...TRAFFIC_POINT.example,
      nodes: 2,
      version: 12,
      configAgeMs: 400,
      inFlight: 3,
      firingAlerts: 0,
      breaker: 'closed',
      top: [TOP_DIMENSION.example],
    },
  ],
  required: {
    ...POINT_PARTS,
    nodes: count('Nodes that the figures cover.'),
    version: count('Number of the version that is enforced; 0 when none is.'),
    configAgeMs: count('Milliseconds since the configuration was last known to be current.'),
    inFlight: count('Requests that are being answered.'),
    firingAlerts: count('Alerts that hold.'),
    breaker: {
      description: 'State of the breaker. closed: calls go to the store. open: none do. half-open: one call probes it.',
      type: 'string',
      enum: ['closed', 'half-open', 'open'],
    },
    top: listOf<TopDimension>('The callers that were denied most in the last minutes.', TOP_DIMENSION.ref),
  },
})
export interface LiveSample extends Infer<typeof LIVE_SAMPLE> {}

export const TOP_ANSWER = answerSchema('TopAnswer', {
  description: 'The callers that were denied most.',
  examples: [{ spanMs: 600_000, nodes: 2, dimensions: [TOP_DIMENSION.example] }],
  required: {
    spanMs: count('Over so much of the past, in milliseconds.'),
    nodes: count('Nodes that the figures cover.'),
    dimensions: listOf<TopDimension>('One for each kind of caller.', TOP_DIMENSION.ref),
  },
})
export interface TopAnswer extends Infer<typeof TOP_ANSWER> {}
