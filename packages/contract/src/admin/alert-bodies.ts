import type { Infer } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { count, duration, instant, NOTE, pageSchema, words } from '../schema/value-schemas.ts'

const ALERT_EXAMPLE = {
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
} as const

export const ALERT = answerSchema('Alert', {
  description: 'Something that somebody should look at.',
  examples: [
    ALERT_EXAMPLE,
    {
      ...ALERT_EXAMPLE,
      acknowledgedAt: 1_762_337_160_000,
      acknowledgedBy: 'ada',
      acknowledgedNote: 'we know: load test',
      silencedUntil: 1_762_340_760_000,
      silencedBy: 'ada',
      silencedNote: 'load test until noon',
    },
  ],
  required: {
    id: words('Names it.'),
    rule: words('What it watches, such as store-latency, denial-rate, store-errors or config-lag.'),
    scope: {
      description:
        'cluster: about the calls of all nodes or something that they share, delivered once for all of them. ' +
        'node: about one node.',
      enum: ['cluster', 'node'],
    },
    node: words('Name of the node it is about; of a cluster alert, the one that saw it first.'),
    state: { description: 'firing: it holds. resolved: it held.', enum: ['firing', 'resolved'] },
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
export interface Alert extends Infer<typeof ALERT> {}

export const ALERT_PAGE = pageSchema<Alert>('AlertPage', ALERT)

export const ACKNOWLEDGE_REQUEST = requestSchema('AcknowledgeRequest', {
  description: 'Says that somebody looks after an alert.',
  examples: [{ note: 'we know: load test' }],
  optional: { note: NOTE },
})
export interface AcknowledgeRequest extends Infer<typeof ACKNOWLEDGE_REQUEST> {}

export const SILENCE_REQUEST = requestSchema('SilenceRequest', {
  description: 'Keeps an alert quiet for a time.',
  examples: [{ duration: '1h', note: 'load test until noon' }],
  required: { duration: duration('For how long, from now on.') },
  optional: { note: NOTE },
})
export interface SilenceRequest extends Infer<typeof SILENCE_REQUEST> {}

const DEAD_LETTER = answerSchema('DeadLetter', {
  description: 'A message about an alert or a block that could not be delivered.',
  examples: [
    {
      id: '1987654321098765440',
      alertId: '1987654321098765432',
      destination: 'https://hooks.example.com',
      attempts: 5,
      firstAttemptAt: 1_762_337_100_000,
      lastAttemptAt: 1_762_337_162_000,
      error: 'answered with status 502',
    },
  ],
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
export interface DeadLetter extends Infer<typeof DEAD_LETTER> {}

export const DEAD_LETTER_PAGE = pageSchema<DeadLetter>('DeadLetterPage', DEAD_LETTER)
