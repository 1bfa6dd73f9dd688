import type { Alert } from '@sluice/contract'
import type { Logger, NowMs } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type {
  AlertActor,
  AlertMark,
  AlertNotice,
  AlertRecord,
  AlertState,
  Silence,
  SilenceOrder,
  Watch,
} from './alert-record.ts'
import {
  dueNotice,
  isSilent,
  nextWatch,
  noticeId,
  noticeText,
  shownAlert,
  summaryOf,
  withTold,
} from './alert-record.ts'
import type { AlertRule, AlertRuleName } from './alert-rule.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { readingOf } from './alert-signals.ts'
import type { StatePart } from './state-file.ts'
import type { WebhookChannel } from './webhook-channel.ts'

/** What an {@link AlertMonitor} works with. */
export interface AlertMonitorParts {
  readonly rules: readonly AlertRule[]
  /** Interval of reminders about an alert that is not acknowledged, in milliseconds; 0: none. */
  readonly remindEveryMs: number
  /** Name of this process in notices. */
  readonly node: string
  readonly nowMs: NowMs
  /** Creates a globally unique string of at most 50 letters, digits, `_`, `.` and `-`. */
  readonly newId: () => string
  readonly channel: Pick<WebhookChannel, 'send'>
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Where alerts survive a restart. Default: nowhere. */
  readonly store?: StatePart<AlertState> | undefined
}

/** Maximum number of alerts kept; the oldest resolved ones are dropped first. */
const MAX_ALERTS = 100

/** Maximum number of notices that wait for a full channel; the oldest are dropped first. */
const MAX_WAITING = 100

/**
 * Evaluates the rules about this node and sends a notice when an alert fires and when it resolves. Has no timer: call
 * {@link AlertMonitor.evaluate}.
 *
 * A notice is saved together with the change it reports, and removed once the channel has saved it. If the process dies
 * in between, the channel gets it again under the same id.
 */
export class AlertMonitor {
  readonly #parts: AlertMonitorParts
  readonly #watches: Map<AlertRuleName, Watch>
  readonly #silences: Map<AlertRuleName, Silence>
  /** Oldest first. */
  readonly #alerts: Map<string, AlertRecord>
  readonly #outbox: Map<string, AlertNotice>
  /** Ids of notices that are being handed to the channel. */
  readonly #sending = new Set<string>()
  readonly #work = new Set<Promise<void>>()
  #isChanged = false
  #dropped = 0

  /** Continues from the saved state. */
  constructor(parts: AlertMonitorParts) {
    this.#parts = parts
    const { silences = {}, alerts = [], outbox = [] } = parts.store?.load() ?? {}
    // Pending conditions start over: they were not evaluated in the meantime.
    this.#watches = new Map(alerts.map((record) => [record.rule, watchOf(record)]))
    this.#silences = new Map(Object.entries(silences) as [AlertRuleName, Silence][])
    this.#alerts = new Map(alerts.map((record) => [record.id, record]))
    this.#outbox = new Map(outbox.map((notice) => [notice.id, notice]))
  }

  /** Updates all alerts and sends the notices that are due. Call it about once a second. */
  evaluate(signals: SignalSnapshot): void {
    const nowMs = this.#nowMs()
    for (const rule of this.#parts.rules) this.#update(rule, readingOf(rule, signals), nowMs)
    this.#resolveDisabled(nowMs)
    for (const record of this.#alerts.values()) this.#addNotice(record, nowMs)
    this.#dropOld()
    if (this.#isChanged) this.#save()
    this.#dispatch()
  }

  list(): readonly Alert[] {
    const nowMs = this.#nowMs()
    const newestFirst = [...this.#alerts.values()].reverse()
    const inOrder = [...newestFirst.filter(isFiring), ...newestFirst.filter((record) => !isFiring(record))]
    return inOrder.map((record) => this.#shown(record, nowMs))
  }

  acknowledge(id: string, actor: AlertActor): Alert | undefined {
    const record = this.#alerts.get(id)
    if (record === undefined) return undefined
    const nowMs = this.#nowMs()
    const acknowledged = { ...record, acknowledgement: markOf(actor, nowMs) }
    this.#alerts.set(id, acknowledged)
    this.#save()
    this.#parts.log.info('an alert was acknowledged', { alert: id, rule: record.rule, ...acknowledged.acknowledgement })
    return this.#shown(acknowledged, nowMs)
  }

  silence(id: string, order: SilenceOrder): Alert | undefined {
    const record = this.#alerts.get(id)
    if (record === undefined) return undefined
    const nowMs = this.#nowMs()
    const silence = { ...markOf(order, nowMs), until: nowMs + order.durationMs }
    this.#silences.set(record.rule, silence)
    this.#save()
    this.#parts.log.info('an alert was silenced', { alert: id, rule: record.rule, ...silence })
    return this.#shown(record, nowMs)
  }

  /** Number of notices dropped because too many were waiting. */
  get dropped(): number {
    return this.#dropped
  }

  /** Resolves when all saves and sends so far have ended. */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  #update(rule: AlertRule, value: number | undefined, nowMs: number): void {
    const before = this.#watches.get(rule.name) ?? { state: 'ok', since: nowMs }
    const holds = value !== undefined && value > rule.threshold
    const after = nextWatch(before, { holds, nowMs }, rule)
    this.#watches.set(rule.name, after)
    const current = this.#current(rule.name)
    if (after.state === 'firing') {
      if (holds) this.#fire(rule, { value, nowMs }, current)
    } else if (current !== undefined) this.#resolve(current, nowMs)
  }

  /** Updates the alert of a rule, or creates one. */
  #fire(rule: AlertRule, seen: { value: number; nowMs: number }, current: AlertRecord | undefined): void {
    const { name, threshold, unit } = rule
    const measured = { value: seen.value, threshold, unit, summary: summaryOf(rule, seen.value) }
    if (current !== undefined) {
      this.#alerts.set(current.id, { ...current, ...measured })
      return
    }
    const id = this.#parts.newId()
    const { node } = this.#parts
    this.#alerts.set(id, {
      id,
      rule: name,
      scope: 'node',
      node,
      state: 'firing',
      firedAt: seen.nowMs,
      reminders: 0,
      ...measured,
    })
    this.#isChanged = true
    this.#parts.log.warn('an alert fires', { alert: id, rule: name, ...measured })
  }

  #resolve(record: AlertRecord, nowMs: number): void {
    const { id, rule } = record
    this.#alerts.set(id, { ...record, state: 'resolved', resolvedAt: nowMs })
    this.#isChanged = true
    this.#parts.log.info('an alert is resolved', { alert: id, rule })
  }

  /** Resolves alerts of rules that are now disabled. */
  #resolveDisabled(nowMs: number): void {
    for (const record of this.#alerts.values()) {
      const isEnabled = this.#parts.rules.some(({ name }) => name === record.rule)
      if (isFiring(record) && !isEnabled) this.#resolve(record, nowMs)
    }
  }

  /** Puts the notice that is due about an alert into the outbox, if any. */
  #addNotice(record: AlertRecord, nowMs: number): void {
    const { remindEveryMs } = this.#parts
    const silence = this.#silences.get(record.rule)
    const kind = dueNotice(record, { nowMs, isSilent: isSilent(silence, nowMs), remindEveryMs })
    if (kind === undefined) return
    const id = noticeId(record, kind)
    const text = noticeText(kind, record)
    this.#outbox.set(id, { id, kind, at: nowMs, text, alert: this.#shown(record, nowMs) })
    this.#alerts.set(record.id, withTold(record, kind, nowMs))
    this.#isChanged = true
  }

  #dropOld(): void {
    for (const [id, record] of this.#alerts) {
      if (this.#alerts.size <= MAX_ALERTS) break
      if (!isFiring(record) && record.told?.state !== 'firing') this.#alerts.delete(id)
    }
    for (const id of this.#outbox.keys()) {
      if (this.#outbox.size <= MAX_WAITING) break
      this.#outbox.delete(id)
      this.#dropped++
      this.#parts.log.error('a notice of an alert was dropped', { notice: id })
    }
  }

  #dispatch(): void {
    for (const notice of this.#outbox.values()) {
      if (this.#sending.has(notice.id)) continue
      this.#sending.add(notice.id)
      this.#track(this.#send(notice))
    }
  }

  async #send(notice: AlertNotice): Promise<void> {
    const isAccepted = await this.#parts.channel.send(notice)
    this.#sending.delete(notice.id)
    if (isAccepted && this.#outbox.delete(notice.id)) this.#save()
  }

  #save(): void {
    this.#isChanged = false
    const { store, log } = this.#parts
    if (store === undefined) return
    const saved = store.save(this.#state()).catch((error: unknown) => {
      log.error('could not save the state of alerts', { error: errorFields(error) })
    })
    this.#track(saved)
  }

  #state(): AlertState {
    return {
      silences: Object.fromEntries(this.#silences),
      alerts: [...this.#alerts.values()],
      outbox: [...this.#outbox.values()],
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#work.delete(tracked))
    this.#work.add(tracked)
  }

  /** The alert of a rule that fires. */
  #current(rule: AlertRuleName): AlertRecord | undefined {
    return [...this.#alerts.values()].find((record) => record.rule === rule && isFiring(record))
  }

  #shown(record: AlertRecord, nowMs: number): Alert {
    return shownAlert(record, this.#silences.get(record.rule), nowMs)
  }

  /** Whole milliseconds. */
  #nowMs(): number {
    return Math.floor(this.#parts.nowMs())
  }
}

/** The state of a rule after its last alert. */
function watchOf({ state, firedAt, resolvedAt = firedAt }: AlertRecord): Watch {
  return { state, since: state === 'firing' ? firedAt : resolvedAt }
}

function isFiring({ state }: AlertRecord): boolean {
  return state === 'firing'
}

function markOf({ by, note }: AlertActor, at: number): AlertMark {
  return { at, by, ...(note === undefined ? {} : { note }) }
}
