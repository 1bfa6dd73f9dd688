import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, choices } from '../schema/json-schema.ts'
import { count, instant, listOf, words } from '../schema/value-schemas.ts'

/** Checks of one resource or region in a span of time. */
export interface TrafficShare {
  /** The resource or region; `other` for all that are not listed on their own. */
  readonly name: string
  readonly checks: number
  readonly denials: number
}

/** What happened in a span of time. */
export interface TrafficPoint {
  /** When the span began; milliseconds since 1970. */
  readonly at: number
  /** Its length in milliseconds. */
  readonly spanMs: number
  readonly checks: number
  readonly denials: number
  /** Checks that were decided without the store. */
  readonly withoutStore: number
  readonly storeErrors: number
  /** Latency of the store in milliseconds; null when it was not asked. */
  readonly storeP50Ms: number | null
  readonly storeP99Ms: number | null
  readonly resources: readonly TrafficShare[]
  readonly regions: readonly TrafficShare[]
}

/** What happens now: an event of the live stream. */
export interface LiveSample extends TrafficPoint {
  /** Number of the version that is enforced; 0 when none is. */
  readonly version: number
  /** Milliseconds since the configuration was last known to be current. */
  readonly configAgeMs: number
  /** Requests that are being answered. */
  readonly inFlight: number
  readonly firingAlerts: number
  /**
   * Whether the store is asked: `closed` when it is, `open` when it is left alone, `half-open` when it is tried again.
   */
  readonly breaker: 'closed' | 'half-open' | 'open'
  /** The callers that were denied most in the last minutes. */
  readonly top: readonly TopDimension[]
}

/** What happened over a longer time. */
export interface HistoryAnswer {
  /** Length of the span of each point in milliseconds: that of the question, or the next longer one that is kept. */
  readonly stepMs: number
  /** Oldest first; spans in which nothing happened are left out. */
  readonly points: readonly TrafficPoint[]
}

/** One of the callers that were denied most. */
export interface TopEntry {
  readonly entity: string
  /** Denials: at most this many, and up to `error` fewer. */
  readonly denials: number
  readonly error: number
}

/** The callers of one dimension that were denied most. */
export interface TopDimension {
  readonly dimension: string
  /** Most denied first. */
  readonly entries: readonly TopEntry[]
}

/** The callers that were denied most. */
export interface TopAnswer {
  /** Over so much of the past, in milliseconds. */
  readonly spanMs: number
  readonly dimensions: readonly TopDimension[]
}

const SHARE_EXAMPLE: TrafficShare = { name: '/api/v1/data', checks: 1200, denials: 37 }

const POINT_EXAMPLE: TrafficPoint = {
  at: 1_762_337_100_000,
  spanMs: 1000,
  checks: 1200,
  denials: 37,
  withoutStore: 0,
  storeErrors: 0,
  storeP50Ms: 0.3,
  storeP99Ms: 1.7,
  resources: [SHARE_EXAMPLE],
  regions: [{ name: 'EU', checks: 1200, denials: 37 }],
}

const TOP_EXAMPLE: TopDimension = {
  dimension: 'user',
  entries: [{ entity: 'user-123', denials: 411, error: 3 }],
}

const LATENCY = { type: ['number', 'null'], minimum: 0 } as const

/** The schema of {@link TrafficShare}. */
const TRAFFIC_SHARE: NamedSchema<TrafficShare> = answerSchema('TrafficShare', {
  description: 'Checks of one resource or region in a span of time.',
  examples: [SHARE_EXAMPLE],
  required: {
    name: words('The resource or region; other for all that are not listed on their own.'),
    checks: count('Checks.'),
    denials: count('Denied checks.'),
  },
})

const POINT_PARTS = {
  at: instant('When the span began.'),
  spanMs: count('Its length in milliseconds.'),
  checks: count('Checks.'),
  denials: count('Denied checks.'),
  withoutStore: count('Those that were decided without the store.'),
  storeErrors: count('Questions to the store that failed.'),
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

/** The schema of {@link TrafficPoint}. */
const TRAFFIC_POINT: NamedSchema<TrafficPoint> = answerSchema('TrafficPoint', {
  description: 'What happened in a span of time.',
  examples: [POINT_EXAMPLE],
  required: POINT_PARTS,
})

/** The schema of {@link HistoryAnswer}. */
export const HISTORY_ANSWER: NamedSchema<HistoryAnswer> = answerSchema('HistoryAnswer', {
  description: 'What happened over a longer time.',
  examples: [{ stepMs: 60_000, points: [{ ...POINT_EXAMPLE, spanMs: 60_000 }] }],
  required: {
    stepMs: count('Length of the span of each point in milliseconds.'),
    points: listOf<TrafficPoint>('Oldest first; spans in which nothing happened are left out.', TRAFFIC_POINT.ref),
  },
})

/** The schema of {@link TopEntry}. */
const TOP_ENTRY: NamedSchema<TopEntry> = answerSchema('TopEntry', {
  description: 'One of the callers that were denied most.',
  examples: [{ entity: 'user-123', denials: 411, error: 3 }],
  required: {
    entity: words('The caller.'),
    denials: count('Denials: at most this many, and up to "error" fewer.'),
    error: count('How much too high that may be.'),
  },
})

/** The schema of {@link TopDimension}. */
const TOP_DIMENSION: NamedSchema<TopDimension> = answerSchema('TopDimension', {
  description: 'The callers of one dimension that were denied most.',
  examples: [TOP_EXAMPLE],
  required: {
    dimension: words('What kind of caller.'),
    entries: listOf<TopEntry>('Most denied first.', TOP_ENTRY.ref),
  },
})

/** The schema of {@link LiveSample}. */
export const LIVE_SAMPLE: NamedSchema<LiveSample> = answerSchema('LiveSample', {
  description: 'What happens now: the data of each event.',
  examples: [
    {
      ...POINT_EXAMPLE,
      version: 12,
      configAgeMs: 400,
      inFlight: 3,
      firingAlerts: 0,
      breaker: 'closed',
      top: [TOP_EXAMPLE],
    },
  ],
  required: {
    ...POINT_PARTS,
    version: count('Number of the version that is enforced; 0 when none is.'),
    configAgeMs: count('Milliseconds since the configuration was last known to be current.'),
    inFlight: count('Requests that are being answered.'),
    firingAlerts: count('Alerts that hold.'),
    breaker: {
      description: 'State of the breaker. closed: calls go to the store. open: none do. half-open: one call probes it.',
      type: 'string',
      enum: choices('closed', 'half-open', 'open'),
    },
    top: listOf<TopDimension>('The callers that were denied most in the last minutes.', TOP_DIMENSION.ref),
  },
})

/** The schema of {@link TopAnswer}. */
export const TOP_ANSWER: NamedSchema<TopAnswer> = answerSchema('TopAnswer', {
  description: 'The callers that were denied most.',
  examples: [{ spanMs: 600_000, dimensions: [TOP_EXAMPLE] }],
  required: {
    spanMs: count('Over so much of the past, in milliseconds.'),
    dimensions: listOf<TopDimension>('One for each kind of caller.', TOP_DIMENSION.ref),
  },
})
