import type { Alert } from '@sluice/contract'
import type { AlertRule } from './alert-rule.ts'

/** Who did something to an alert. Instants are in milliseconds since 1970. */
export interface AlertMark {
  readonly at: number
  /** Name of the API key. */
  readonly by: string
  readonly note?: string
}

/** Keeps a rule quiet. */
export interface Silence extends AlertMark {
  /** From then on it is heard again. */
  readonly until: number
}

/** One time that a rule fired, from the beginning to the end, as it is kept: plain data. */
export interface AlertRecord extends Pick<AlertRule, 'threshold' | 'unit'> {
  readonly id: string
  readonly rule: AlertRule['name']
  /** Whether it is about all nodes or about one. */
  readonly scope: 'cluster' | 'node'
  /** The node it is about; of a cluster alert, the one that saw it first. */
  readonly node: string
  readonly state: 'firing' | 'resolved'
  /** What is the matter, in words. */
  readonly summary: string
  /** The last that was measured while the condition held. */
  readonly value: number
  readonly firedAt: number
  readonly resolvedAt?: number
  readonly acknowledgement?: AlertMark
  /** What receivers were told last; undefined when nothing. */
  readonly told?: { readonly state: 'firing' | 'resolved'; readonly at: number }
  /** How often they were reminded. */
  readonly reminders: number
}

/** An alert as it is shown at `nowMs`, with the silence of its rule while that lasts. */
export function shownAlert(record: AlertRecord, silence: Silence | undefined, nowMs: number): Alert {
  const { id, rule, scope, node, state, summary, value, threshold, unit, firedAt, resolvedAt, acknowledgement } = record
  return {
    id,
    rule,
    scope,
    node,
    state,
    summary,
    value,
    threshold,
    unit,
    firedAt,
    ...(resolvedAt === undefined ? {} : { resolvedAt }),
    ...(acknowledgement === undefined ? {} : shownAcknowledgement(acknowledgement)),
    ...(silence === undefined || !isSilent(silence, nowMs) ? {} : shownSilence(silence)),
  }
}

/** Whether a silence lasts at `nowMs`. */
export function isSilent(silence: Silence | undefined, nowMs: number): boolean {
  return silence !== undefined && nowMs < silence.until
}

function shownAcknowledgement({ at, by, note }: AlertMark): Partial<Alert> {
  return { acknowledgedAt: at, acknowledgedBy: by, ...(note === undefined ? {} : { acknowledgedNote: note }) }
}

function shownSilence({ until, by, note }: Silence): Partial<Alert> {
  return { silencedUntil: until, silencedBy: by, ...(note === undefined ? {} : { silencedNote: note }) }
}
