import type { Alert } from '@sluice/contract'
import type { AlertRule, AlertRuleName } from './alert-rule.ts'

/** Who changed an alert, and when. All times are milliseconds since 1970. */
export interface AlertMark {
  readonly at: number
  /** Name of the API key. */
  readonly by: string
  readonly note?: string
}

/** Who changes an alert. */
export interface AlertActor {
  /** Name of the API key. */
  readonly by: string
  readonly note?: string | undefined
}

/** A silence to set. */
export interface SilenceOrder extends AlertActor {
  /** From now, in milliseconds; 0 ends the silence. */
  readonly durationMs: number
}

/** Suppresses the notices of a rule. */
export interface Silence extends AlertMark {
  /** End of the silence. */
  readonly until: number
}

/** One alert, from firing to resolved, as it is stored: plain data. */
export interface AlertRecord extends Pick<AlertRule, 'threshold' | 'unit'> {
  readonly id: string
  readonly rule: AlertRuleName
  /** Key of its condition, if that is not the name of the rule. */
  readonly condition?: string
  /** Whether it is about all nodes or about one. */
  readonly scope: 'cluster' | 'node'
  /** The node it is about; for a cluster alert, the one that fired first. */
  readonly node: string
  readonly state: 'firing' | 'resolved'
  /** Description for people. */
  readonly summary: string
  /** Last value measured while the condition was true. */
  readonly value: number
  readonly firedAt: number
  readonly resolvedAt?: number
  readonly acknowledgement?: AlertMark
  /** The last notice about it; undefined if there was none. */
  readonly told?: { readonly state: 'firing' | 'resolved'; readonly at: number }
  /** Number of reminders. */
  readonly reminders: number
}

/** Key of the condition of an alert. */
export function conditionOf({ rule, condition = rule }: Pick<AlertRecord, 'rule' | 'condition'>): string {
  return condition
}

const MS_PER_SECOND = 1000

/** Description of an alert whose value is above the threshold. */
export function summaryOf({ name, threshold, windowMs }: AlertRule, value: number): string {
  const window = `${windowMs / MS_PER_SECOND} seconds`
  switch (name) {
    case 'store-latency':
      return `the p99 of store calls in the last ${window} is ${short(value)} ms, above ${short(threshold)} ms`
    case 'denial-rate':
      return `${percent(value)} of checks in the last ${window} were denied, above ${percent(threshold)}`
    case 'store-errors':
      return `${percent(value)} of store calls in the last ${window} failed, above ${percent(threshold)}`
    case 'config-lag':
      return `the active rules have been out of date for ${short(value)} seconds, above ${short(threshold)} seconds`
  }
}

function percent(share: number): string {
  return `${short(share * 100)} %`
}

/** Four significant digits. */
function short(value: number): string {
  return String(Number(value.toPrecision(4)))
}

/** An alert as the API shows it, with the silence of its rule if that is active. */
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

/** Whether a silence is active at `nowMs`. */
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
 * State of the condition of one rule: plain data.
 *
 *     ok, resolved --true--> pending --true for forMs--> firing --false for resolveAfterMs--> resolved
 *                            pending --false--> ok       firing --true before that--> firing
 *
 * With a `forMs` of 0 there is no pending. `resolved` is `ok` after it fired.
 */
export interface Watch {
  readonly state: 'ok' | 'pending' | 'firing' | 'resolved'
  /** When it entered this state. */
  readonly since: number
  /** While firing: when the condition became false; undefined while it is true. */
  readonly goneSince?: number
}

/** One evaluation of a condition. */
export interface Sight {
  /** Whether the condition is true. */
  readonly holds: boolean
  readonly nowMs: number
}

/**
 * The state after an evaluation. When the clock goes back, running periods start over, so that none takes more than
 * twice its time.
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

/** A message about an alert, kept until it is delivered. */
export interface AlertNotice {
  /** Unique, without a full stop. Receivers use it to drop duplicates. */
  readonly id: string
  /** `reminder`: it still fires and is not acknowledged. */
  readonly kind: 'firing' | 'reminder' | 'resolved'
  /** When it was created. */
  readonly at: number
  /** One line for people. */
  readonly text: string
  /** The alert at that time. */
  readonly alert: Alert
}

/** What decides whether a notice is due. */
export interface NoticeTimes {
  readonly nowMs: number
  /** Whether the rule is silenced. */
  readonly isSilent: boolean
  /** 0: never. */
  readonly remindEveryMs: number
}

/**
 * The notice that is due about an alert, if any: one for each change, and reminders. A change during a silence is
 * reported after it, unless the alert is resolved by then and was never reported.
 */
export function dueNotice(
  { state, told, acknowledgement }: AlertRecord,
  { nowMs, isSilent: isQuiet, remindEveryMs }: NoticeTimes,
): AlertNotice['kind'] | undefined {
  if (isQuiet) return undefined
  if (state === 'resolved') return told?.state === 'firing' ? 'resolved' : undefined
  if (told === undefined) return 'firing'
  if (remindEveryMs === 0 || acknowledgement !== undefined) return undefined
  // The absolute difference: a clock that went back must not delay reminders.
  return Math.abs(nowMs - told.at) >= remindEveryMs ? 'reminder' : undefined
}

/** The record after a notice. */
export function withTold(record: AlertRecord, kind: AlertNotice['kind'], nowMs: number): AlertRecord {
  const isReminder = kind === 'reminder'
  return {
    ...record,
    told: { state: isReminder ? 'firing' : kind, at: nowMs },
    reminders: record.reminders + (isReminder ? 1 : 0),
  }
}

/** Id of a notice: the same for the same change, even if it is created again after a restart. */
export function noticeId({ id, reminders }: AlertRecord, kind: AlertNotice['kind']): string {
  return kind === 'reminder' ? `${id}_reminder_${reminders + 1}` : `${id}_${kind}`
}

/**
 * Body of a webhook, as Standard Webhooks recommends it. Chat tools show `text`. The same notice always gives the same
 * bytes.
 *
 * Receivers may get a notice more than once, and notices in any order. Of two about one alert, the one with the later
 * `timestamp` is newer.
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

/** What a monitor keeps across restarts: plain data. */
export interface AlertState {
  readonly silences: { readonly [Name in AlertRuleName]?: Silence }
  /** Oldest first. */
  readonly alerts: readonly AlertRecord[]
  /** Notices that the channel has not accepted yet, oldest first. */
  readonly outbox: readonly AlertNotice[]
}
