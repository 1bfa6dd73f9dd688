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

/**
 * How the condition of one rule stands: plain data. Instants are in milliseconds since 1970.
 *
 *     ok, resolved --holds--> pending --held for forMs--> firing --gone for resolveAfterMs--> resolved
 *                             pending --gone--> ok        firing --back before that--> firing
 *
 * With a `forMs` of 0 there is no pending. `resolved` is `ok` after it fired.
 */
export interface Watch {
  readonly state: 'ok' | 'pending' | 'firing' | 'resolved'
  /** Since when it is in this state. */
  readonly since: number
  /** While firing: since when the condition is gone; undefined while it holds. */
  readonly goneSince?: number
}

/** What was seen at one instant. */
export interface Sight {
  /** Whether the condition holds. */
  readonly holds: boolean
  readonly nowMs: number
}

/**
 * The watch after a look at the condition. A clock that goes back begins the times that are being waited for anew, so that
 * none of them is longer than it should be by more than once.
 */
export function nextWatch(watch: Watch, sight: Sight, rule: Pick<AlertRule, 'forMs' | 'resolveAfterMs'>): Watch {
  const { holds, nowMs } = sight
  const since = Math.min(watch.since, nowMs)
  switch (watch.state) {
    case 'ok':
    case 'resolved':
      if (!holds) return since === watch.since ? watch : { ...watch, since }
      return { state: rule.forMs === 0 ? 'firing' : 'pending', since: nowMs }
    case 'pending':
      if (!holds) return { state: 'ok', since: nowMs }
      return nowMs - since >= rule.forMs ? { state: 'firing', since: nowMs } : { state: 'pending', since }
    case 'firing': {
      if (holds) return { state: 'firing', since }
      const goneSince = Math.min(watch.goneSince ?? nowMs, nowMs)
      if (nowMs - goneSince >= rule.resolveAfterMs) return { state: 'resolved', since: nowMs }
      return { state: 'firing', since, goneSince }
    }
  }
}

/** What a receiver is told, and kept until it has been. */
export interface AlertNotice {
  /** Names this notice, without a full stop: receivers know by it what they have already. */
  readonly id: string
  /** `firing`: it begins. `reminder`: it goes on, and nobody has acknowledged it. `resolved`: it is over. */
  readonly kind: 'firing' | 'reminder' | 'resolved'
  /** When it was made, in milliseconds since 1970. */
  readonly at: number
  /** All of it in one line, to be shown to people. */
  readonly text: string
  /** The alert as it stood then. */
  readonly alert: Alert
}

/** What decides whether it is time for a notice. */
export interface NoticeTimes {
  readonly nowMs: number
  /** Nothing is told while it lasts. */
  readonly isSilent: boolean
  /** 0: never. */
  readonly remindEveryMs: number
}

/**
 * What receivers have to be told about an alert now, if anything: one notice for each change, and reminders. What changed
 * during a silence is told after it, unless it is over by then and receivers never heard of it.
 */
export function dueNotice(
  { state, told, acknowledgement }: AlertRecord,
  { nowMs, isSilent: isQuiet, remindEveryMs }: NoticeTimes,
): AlertNotice['kind'] | undefined {
  if (isQuiet) return undefined
  if (state === 'resolved') return told?.state === 'firing' ? 'resolved' : undefined
  if (told === undefined) return 'firing'
  if (remindEveryMs === 0 || acknowledgement !== undefined) return undefined
  // By the distance: a clock that went back far must not keep it quiet for as long.
  return Math.abs(nowMs - told.at) >= remindEveryMs ? 'reminder' : undefined
}

/** The record after receivers were told. */
export function withTold(record: AlertRecord, kind: AlertNotice['kind'], nowMs: number): AlertRecord {
  const isReminder = kind === 'reminder'
  return {
    ...record,
    told: { state: isReminder ? 'firing' : kind, at: nowMs },
    reminders: record.reminders + (isReminder ? 1 : 0),
  }
}

/** The id of a notice: the same for the same change, also when it is made again after a restart. */
export function noticeId({ id, reminders }: AlertRecord, kind: AlertNotice['kind']): string {
  return kind === 'reminder' ? `${id}_reminder_${reminders + 1}` : `${id}_${kind}`
}

/**
 * The body of a webhook, as Standard Webhooks recommends it; `text` is where chats look for it. Always the same bytes.
 *
 * A receiver may get one more than once, and two of them in any order. Of two about one alert the one with the later `timestamp`
 * is the newer.
 */
export function noticeBody({ kind, at, text, alert }: AlertNotice): string {
  return JSON.stringify({ type: `alert.${kind}`, timestamp: new Date(at).toISOString(), text, data: alert })
}

/** A notice in one line. */
export function noticeText(kind: AlertNotice['kind'], { rule, scope, node, summary }: AlertRecord): string {
  const where = scope === 'cluster' ? `in the cluster, first seen on ${node}` : `on ${node}`
  if (kind === 'resolved') return `Resolved: ${rule} ${where}. It was: ${summary}.`
  return `${kind === 'firing' ? 'Alert' : 'Alert, still'}: ${rule} ${where}: ${summary}.`
}
