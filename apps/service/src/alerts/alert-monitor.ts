import type { Alert, DeadLetter } from '@sluice/contract'
import type { Logger, NowMs } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { AlertMark, AlertNotice, AlertRecord, Silence, Watch } from './alert-record.ts'
import { dueNotice, isSilent, nextWatch, noticeId, noticeText, shownAlert, withTold } from './alert-record.ts'
import type { AlertRule, AlertRuleName } from './alert-rule.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { readingOf, summaryOf } from './alert-signals.ts'
import type { AlertActor, AlertChannel, Alerts, RedeliverOutcome, SilenceOrder } from './alerts.ts'

/** What an {@link AlertMonitor} works with. */
export interface AlertMonitorParts {
  readonly rules: readonly AlertRule[]
  /** How often receivers are reminded of an alert that nobody acknowledged, in milliseconds; 0: never. */
  readonly remindEveryMs: number
  /** Which process this is, for whoever gets notices of several. */
  readonly node: string
  readonly nowMs: NowMs
  /** A text of at most 50 letters, digits, `_`, `.` and `-` that was never given before, by no process. */
  readonly newId: () => string
  readonly channel: AlertChannel
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Where alerts survive a restart. Default: nowhere. */
  readonly store?: AlertStateStore | undefined
}

/** Alerts that are remembered; the oldest of those that are over go first. */
const MOST_ALERTS = 100

/** Notices that wait for an channel that takes none; the oldest go first. */
const MOST_WAITING = 100

/**
 * Watches the rules that are about this node and tells receivers when one begins to hold and when it does no more. Does nothing by itself: time passes
 * when somebody calls {@link AlertMonitor.evaluate}.
 *
 * A notice is saved with the change it is about, and forgotten when the channel has saved it: if the process dies in between it
 * is given to the channel once more, under the same id.
 */
export class AlertMonitor implements Alerts {
  readonly #parts: AlertMonitorParts
  readonly #watches: Map<AlertRuleName, Watch>
  readonly #silences: Map<AlertRuleName, Silence>
  /** Oldest first. */
  readonly #alerts: Map<string, AlertRecord>
  readonly #outbox: Map<string, AlertNotice>
  /** Ids of the notices that the channel is just taking over. */
  readonly #leaving = new Set<string>()
  readonly #work = new Set<Promise<void>>()
  #isChanged = false
  #dropped = 0

  /** Goes on where the store says the last one ended. */
  constructor(parts: AlertMonitorParts) {
    this.#parts = parts
    const { silences = {}, alerts = [], outbox = [] } = parts.store?.load() ?? {}
    // What was pending has to begin anew: nobody has looked meanwhile.
    this.#watches = new Map(alerts.map((record) => [record.rule, watchOf(record)]))
    this.#silences = new Map(Object.entries(silences) as [AlertRuleName, Silence][])
    this.#alerts = new Map(alerts.map((record) => [record.id, record]))
    this.#outbox = new Map(outbox.map((notice) => [notice.id, notice]))
  }

  /** Looks at what is known now, changes states, and sends what is due. To be called about once a second. */
  evaluate(signals: SignalSnapshot): void {
    const nowMs = this.#nowMs()
    for (const rule of this.#parts.rules) this.#look(rule, readingOf(rule, signals), nowMs)
    this.#endUnwatched(nowMs)
    for (const record of this.#alerts.values()) this.#tell(record, nowMs)
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

  deadLetters(): readonly DeadLetter[] {
    return this.#parts.channel.deadLetters()
  }

  redeliver(id: string): RedeliverOutcome {
    return this.#parts.channel.redeliver(id)
  }

  /** Notices that were dropped because too many were waiting. */
  get dropped(): number {
    return this.#dropped
  }

  /** Resolves when everything that was to be saved and taken over so far was, or could not be. */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  #look(rule: AlertRule, value: number | undefined, nowMs: number): void {
    const before = this.#watches.get(rule.name) ?? { state: 'ok', since: nowMs }
    const holds = value !== undefined && value > rule.threshold
    const after = nextWatch(before, { holds, nowMs }, rule)
    this.#watches.set(rule.name, after)
    const current = this.#current(rule.name)
    if (after.state === 'firing') {
      if (holds) this.#hold(rule, { value, nowMs }, current)
    } else if (current !== undefined) this.#resolve(current, nowMs)
  }

  /** Keeps an alert up to date, or begins one. */
  #hold(rule: AlertRule, seen: { value: number; nowMs: number }, current: AlertRecord | undefined): void {
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

  /** Ends what began under a rule that is not watched any more. */
  #endUnwatched(nowMs: number): void {
    for (const record of this.#alerts.values()) {
      const isWatched = this.#parts.rules.some(({ name }) => name === record.rule)
      if (isFiring(record) && !isWatched) this.#resolve(record, nowMs)
    }
  }

  #tell(record: AlertRecord, nowMs: number): void {
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
      if (this.#alerts.size <= MOST_ALERTS) break
      if (!isFiring(record) && record.told?.state !== 'firing') this.#alerts.delete(id)
    }
    for (const id of this.#outbox.keys()) {
      if (this.#outbox.size <= MOST_WAITING) break
      this.#outbox.delete(id)
      this.#dropped++
      this.#parts.log.error('a notice of an alert was dropped', { notice: id })
    }
  }

  #dispatch(): void {
    for (const notice of this.#outbox.values()) {
      if (this.#leaving.has(notice.id)) continue
      this.#leaving.add(notice.id)
      this.#track(this.#leave(notice))
    }
  }

  async #leave(notice: AlertNotice): Promise<void> {
    const isTaken = await this.#parts.channel.send(notice)
    this.#leaving.delete(notice.id)
    if (isTaken && this.#outbox.delete(notice.id)) this.#save()
  }

  #save(): void {
    this.#isChanged = false
    const { store, log } = this.#parts
    if (store === undefined) return
    const saved = store.save(this.#state()).catch((error: unknown) => {
      log.error('the state of alerts could not be saved', { error: errorFields(error) })
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

  /** The alert of a rule that is not over. */
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

/** How a rule stood when this was its last alert. */
function watchOf({ state, firedAt, resolvedAt = firedAt }: AlertRecord): Watch {
  return { state, since: state === 'firing' ? firedAt : resolvedAt }
}

function isFiring({ state }: AlertRecord): boolean {
  return state === 'firing'
}

function markOf({ by, note }: AlertActor, at: number): AlertMark {
  return { at, by, ...(note === undefined ? {} : { note }) }
}

/** What a monitor remembers over restarts: plain data. */
export interface AlertState {
  readonly silences: { readonly [Name in AlertRuleName]?: Silence }
  /** Oldest first. */
  readonly alerts: readonly AlertRecord[]
  /** Notices that no channel has taken over yet, oldest first. */
  readonly outbox: readonly AlertNotice[]
}

/** Keeps the state of one monitor. */
export interface AlertStateStore {
  /** What was saved last; undefined when nothing was. */
  load(): AlertState | undefined
  /** Saves it. Of several saves at once the last counts. Rejects when it could not be written. */
  save(state: AlertState): Promise<void>
}
