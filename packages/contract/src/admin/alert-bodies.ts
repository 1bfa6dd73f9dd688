import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, choices, requestSchema } from '../schema/json-schema.ts'
import type { Page } from '../schema/value-schemas.ts'
import { count, duration, instant, NOTE, pageSchema, words } from '../schema/value-schemas.ts'

/** Something that somebody should look at. Instants are in milliseconds since 1970. */
export interface Alert {
  readonly id: string
  /** What it watches, such as `denial-rate`. */
  readonly rule: string
  /** `cluster`: it is about something that all nodes share, and is told once for all. `node`: it is about one node. */
  readonly scope: 'cluster' | 'node'
  /** Name of the node it is about; of a cluster alert, the one that saw it first. */
  readonly node: string
  /** `firing`: it holds. `resolved`: it held. */
  readonly state: 'firing' | 'resolved'
  /** What is the matter, in words. */
  readonly summary: string
  /** What was measured, in the unit of the threshold. */
  readonly value: number
  readonly threshold: number
  /** Such as `ms`, `ratio`, `s`. */
  readonly unit: string
  readonly firedAt: number
  readonly resolvedAt?: number
  readonly acknowledgedAt?: number
  readonly acknowledgedBy?: string
  readonly acknowledgedNote?: string
  /** It is not sent to anybody until then. */
  readonly silencedUntil?: number
  readonly silencedBy?: string
  readonly silencedNote?: string
}

/** The body that says that somebody looks after an alert. */
export interface AcknowledgeRequest {
  readonly note?: string
}

/** The body that keeps an alert quiet for a time. */
export interface SilenceRequest {
  /** For how long, from now on, such as `1h`. */
  readonly duration: string
  readonly note?: string
}

/** A message about an alert or a block that could not be delivered. Instants are in milliseconds since 1970. */
export interface DeadLetter {
  readonly id: string
  /** The alert that it is about; absent when it is about a block. */
  readonly alertId?: string
  /** The network whose block it is about; absent when it is about an alert. */
  readonly cidr?: string
  /** Where it should have gone: scheme and host, without path and secrets. */
  readonly destination: string
  readonly attempts: number
  readonly firstAttemptAt: number
  readonly lastAttemptAt: number
  /** Why the last attempt failed, in words. */
  readonly error: string
}

const ALERT_EXAMPLE: Alert = {
  id: '1987654321098765432',
  rule: 'denial-rate',
  scope: 'cluster',
  node: 'node-1',
  state: 'firing',
  summary: '27 % of the checks of the last 2 minutes were denied, which is above 20 %',
  value: 0.27,
  threshold: 0.2,
  unit: 'ratio',
  firedAt: 1_762_337_100_000,
}

const DEAD_LETTER_EXAMPLE: DeadLetter = {
  id: '1987654321098765440',
  alertId: '1987654321098765432',
  destination: 'https://hooks.example.com',
  attempts: 5,
  firstAttemptAt: 1_762_337_100_000,
  lastAttemptAt: 1_762_337_162_000,
  error: 'answered with status 502',
}

const SEEN_ALERT_EXAMPLE: Alert = {
  ...ALERT_EXAMPLE,
  acknowledgedAt: 1_762_337_160_000,
  acknowledgedBy: 'ada',
  acknowledgedNote: 'we know: load test',
  silencedUntil: 1_762_340_760_000,
  silencedBy: 'ada',
  silencedNote: 'load test until noon',
}

/** The schema of {@link Alert}. */
export const ALERT: NamedSchema<Alert> = answerSchema('Alert', {
  description: 'Something that somebody should look at.',
  examples: [ALERT_EXAMPLE, SEEN_ALERT_EXAMPLE],
  required: {
    id: words('Names it.'),
    rule: words('What it watches, such as store-latency, denial-rate, store-errors or config-lag.'),
    scope: {
      description:
        'cluster: about something that all nodes share, delivered once for all of them. node: about one node.',
      enum: choices('cluster', 'node'),
    },
    node: words('Name of the node it is about; of a cluster alert, the one that saw it first.'),
    state: { description: 'firing: it holds. resolved: it held.', enum: choices('firing', 'resolved') },
    summary: words('What is the matter, in words.'),
    value: { description: 'What was measured, in the unit of the threshold.', type: 'number' },
    threshold: { description: 'What it must not be above.', type: 'number' },
    unit: words('Unit of both, such as ms, ratio or s.'),
    firedAt: instant('Since when it holds.'),
  },
  optional: {
    resolvedAt: instant('Since when it does not hold any more.'),
    acknowledgedAt: instant('When somebody said that they look after it.'),
    acknowledgedBy: words('Name of the API key that said so.'),
    acknowledgedNote: words('What they wrote with it.'),
    silencedUntil: instant('It is not sent to anybody until then.'),
    silencedBy: words('Name of the API key that asked for that.'),
    silencedNote: words('What they wrote with it.'),
  },
})

/** The schema of a page of {@link Alert}. */
export const ALERT_PAGE: NamedSchema<Page<Alert>> = pageSchema('AlertPage', ALERT.ref, ALERT_EXAMPLE)

/** The schema of {@link AcknowledgeRequest}. */
export const ACKNOWLEDGE_REQUEST: NamedSchema<AcknowledgeRequest> = requestSchema('AcknowledgeRequest', {
  description: 'Says that somebody looks after an alert.',
  examples: [{ note: 'we know: load test' }],
  required: {},
  optional: { note: NOTE },
})

/** The schema of {@link SilenceRequest}. */
export const SILENCE_REQUEST: NamedSchema<SilenceRequest> = requestSchema('SilenceRequest', {
  description: 'Keeps an alert quiet for a time.',
  examples: [{ duration: '1h', note: 'load test until noon' }],
  required: { duration: duration('For how long, from now on.') },
  optional: { note: NOTE },
})

/** The schema of {@link DeadLetter}. */
const DEAD_LETTER: NamedSchema<DeadLetter> = answerSchema('DeadLetter', {
  description: 'A message about an alert or a block that could not be delivered.',
  examples: [DEAD_LETTER_EXAMPLE],
  required: {
    id: words('Names it.'),
    destination: words('Where it should have gone: scheme and host, without path and secrets.'),
    attempts: count('How often it was tried.'),
    firstAttemptAt: instant('When it was tried first.'),
    lastAttemptAt: instant('When it was tried last.'),
    error: words('Why the last attempt failed, in words.'),
  },
  optional: {
    alertId: words('The alert that it is about; absent when it is about a block.'),
    cidr: words('The network whose block it is about; absent when it is about an alert.'),
  },
})

/** The schema of a page of {@link DeadLetter}. */
export const DEAD_LETTER_PAGE: NamedSchema<Page<DeadLetter>> = pageSchema(
  'DeadLetterPage',
  DEAD_LETTER.ref,
  DEAD_LETTER_EXAMPLE,
)
