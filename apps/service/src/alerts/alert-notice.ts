import type { Alert } from '@sluice/contract'
import type { AlertRecord } from './alert-record.ts'

/**
 * What a receiver is told: the body of a webhook, as JSON.
 *
 * A receiver may get one more than once, and two of them in any order: `id` is the same whenever it is the same, and of two
 * about one alert the one with the greater `at` is the newer.
 */
export interface AlertNotice {
  /** Names this notice. */
  readonly id: string
  /** `firing`: it begins. `reminder`: it goes on, and nobody has acknowledged it. `resolved`: it is over. */
  readonly kind: 'firing' | 'reminder' | 'resolved'
  /** When it was made, in milliseconds since 1970. */
  readonly at: number
  /** Which process it is about, in the operator's words. */
  readonly node: string
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
  return kind === 'reminder' ? `${id}.reminder-${reminders + 1}` : `${id}.${kind}`
}

/** A notice in one line. */
export function noticeText(kind: AlertNotice['kind'], { rule, summary }: AlertRecord, node: string): string {
  if (kind === 'resolved') return `Resolved: ${rule} on ${node}. It was: ${summary}.`
  return `${kind === 'firing' ? 'Alert' : 'Alert, still'}: ${rule} on ${node}: ${summary}.`
}
