import type { Alert } from '@sluice/contract'
import type { AlertRecord } from './alert-record.ts'

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
  { nowMs, isSilent, remindEveryMs }: NoticeTimes,
): AlertNotice['kind'] | undefined {
  if (isSilent) return undefined
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
