import type { StoredDocument } from '@sluice/config-store'
import type { Alert } from '@sluice/contract'
import type { Logger, NowMs } from '@sluice/runtime'
import type { SharedDocument } from '../config/shared-document.ts'
import { errorFields } from '../observability/error-fields.ts'
import type { AlertActor, AlertRecord, SilenceOrder, Watch } from './alert-record.ts'
import { conditionOf, nextWatch, shownAlert, summaryOf } from './alert-record.ts'
import type { AlertCondition } from './alert-rule.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { readingOf } from './alert-signals.ts'
import type { ClusterState, Measured, NodeView } from './cluster-state.ts'
import { advance, keysOf, merged, NO_ALERTS } from './cluster-state.ts'
import type { TotalSignals } from './shared-signals.ts'
import type { StatePart } from './state-file.ts'
import type { WebhookChannel } from './webhook-channel.ts'

/** Options of {@link ClusterAlerts}. */
export interface ClusterAlertsParts {
  readonly document: SharedDocument
  /** What this node evaluates. Those of the cluster are the same on all nodes, and precede those that they cover. */
  readonly conditions: readonly AlertCondition[]
  /** See {@link AlertMonitorParts}. */
  readonly remindEveryMs: number
  /** Unique id of this node, kept across restarts. */
  readonly nodeId: string
  /** Name of this node for people. */
  readonly nodeName: string
  readonly nowMs: NowMs
  readonly newId: () => string
  readonly channel: Pick<WebhookChannel, 'send' | 'isPending'>
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Copy of the shared state that survives a restart. */
  readonly copy: StatePart<ClusterState>
}

const SYNC_EVERY_MS = 5000
const RENEW_EVERY_MS = 15_000

/** A node that has not renewed its entries and claims for this long is gone. */
const GONE_AFTER_MS = 60_000

/** After this long without the shared document, the node sends its alerts itself. */
const ALONE_AFTER_MS = 30_000

/** Maximum number of write conflicts in a row before it waits for the next evaluation. */
const MAX_ATTEMPTS = 10

/**
 * The alerts that nodes share: each is sent once, and any node may change it. docs/decisions has the invariants and
 * failure cases: 2026-11-17-cluster-alerts.md for the delivery, 2026-11-18-alerts-over-all-nodes.md for what is
 * evaluated. Has no timer: call {@link ClusterAlerts.evaluate}.
 */
export class ClusterAlerts {
  readonly #parts: ClusterAlertsParts
  readonly #watches = new Map<string, Watch>()
  readonly #holding = new Map<string, Measured>()
  /** When each entry and claim of other nodes last changed. */
  readonly #seenSince = new Map<string, number>()
  /** Own messages; `sent` once the channel has accepted one. */
  readonly #messages = new Map<string, 'sending' | 'sent'>()
  readonly #work = new Set<Promise<void>>()
  /** The shared state as this node last read or wrote it. */
  #state: ClusterState
  #savedBody: string
  /** Whether `#state` has changes that are not in the shared document. */
  #hasOwnChanges = false
  #lostSinceMs: number | undefined
  #isAlone = false
  #syncedAtMs = Number.NEGATIVE_INFINITY
  #renewedAtMs = Number.NEGATIVE_INFINITY
  /** The last synchronization; they run one after the other. */
  #lastSync: Promise<void> = Promise.resolve()
  #isSyncing = false

  /** Continues from the saved copy. */
  constructor(parts: ClusterAlertsParts) {
    this.#parts = parts
    this.#state = parts.copy.load() ?? NO_ALERTS
    this.#savedBody = JSON.stringify(this.#state)
    const nowMs = this.#nowMs()
    for (const { key } of parts.conditions) {
      // It was true before the restart: it resolves after the usual time.
      if (this.#isHolder(key)) this.#watches.set(key, { state: 'firing', since: nowMs })
    }
  }

  /**
   * Evaluates all conditions and synchronizes the shared state if needed. Call it about once a second. `total`: the
   * signals of all nodes; undefined as long as they are not known, and then nothing is evaluated that depends on them.
   */
  evaluate(own: SignalSnapshot, total: TotalSignals | undefined): void {
    const nowMs = this.#nowMs()
    const isTrue = new Set<string>()
    for (const condition of this.#parts.conditions) {
      const { key, rule, isOverAllNodes, coveredBy } = condition
      if (total === undefined && (isOverAllNodes || coveredBy !== undefined)) continue
      const value = readingOf(rule, isOverAllNodes ? total!.signals : own)
      const isAbove = value !== undefined && value > rule.threshold
      const holds = isAbove && !(coveredBy !== undefined && isTrue.has(coveredBy))
      if (holds) isTrue.add(key)
      this.#update(condition, { value: holds ? value : undefined, nowMs }, isOverAllNodes ? total : undefined)
    }
    if (!this.#isSyncing && this.#isDue(nowMs)) this.#track(this.#enqueue())
  }

  /** Newest first. `own`: only those of the cluster and of this node. */
  list(only?: 'own'): readonly Alert[] {
    const isOwn = (record: AlertRecord): boolean =>
      record.scope === 'cluster' || this.#parts.conditions.some(({ key }) => key === conditionOf(record))
    const listed = only === 'own' ? this.#state.alerts.filter(isOwn) : this.#state.alerts
    return listed.map((record) => this.#shown(record)).reverse()
  }

  /** Undefined if there is no such alert. */
  acknowledge(id: string, { by, note }: AlertActor): Promise<Alert | undefined> {
    const acknowledgement = { at: this.#nowMs(), by, ...(note === undefined ? {} : { note }) }
    return this.#changeAlert(id, (state) => ({
      ...state,
      alerts: state.alerts.map((record) => (record.id === id ? { ...record, acknowledgement } : record)),
    }))
  }

  /** Undefined if there is no such alert. */
  silence(id: string, { by, note, durationMs }: SilenceOrder): Promise<Alert | undefined> {
    const at = this.#nowMs()
    const silence = { at, by, ...(note === undefined ? {} : { note }), until: at + durationMs }
    return this.#changeAlert(id, (state) => {
      const record = state.alerts.find((each) => each.id === id)
      if (record === undefined) return state
      return { ...state, silences: { ...state.silences, [conditionOf(record)]: silence } }
    })
  }

  /** Resolves when all work so far has ended. */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  async #changeAlert(id: string, change: (state: ClusterState) => ClusterState): Promise<Alert | undefined> {
    await this.#enqueue(change)
    const record = this.#state.alerts.find((each) => each.id === id)
    return record === undefined ? undefined : this.#shown(record)
  }

  /** `value`: undefined unless the condition is true. */
  #update(
    { key, rule }: AlertCondition,
    sight: { value?: number | undefined; nowMs: number },
    total?: TotalSignals,
  ): void {
    const { threshold, unit } = rule
    const { value, nowMs } = sight
    const before = this.#watches.get(key) ?? { state: 'ok', since: nowMs }
    const after = nextWatch(before, { holds: value !== undefined, nowMs }, rule)
    this.#watches.set(key, after)
    if (after.state !== 'firing') this.#holding.delete(key)
    // After a restart, the measured value is unknown.
    else if (value !== undefined || !this.#holding.has(key)) {
      const measured = value ?? threshold
      this.#holding.set(key, {
        value: measured,
        threshold,
        unit,
        summary: summaryOf(rule, measured) + countedText(total),
      })
    }
  }

  #isDue(nowMs: number): boolean {
    const isOutOfDate = this.#parts.conditions.some(({ key }) => this.#holding.has(key) !== this.#isHolder(key))
    const isLost = this.#lostSinceMs !== undefined
    return isOutOfDate || isLost || this.#finished().size > 0 || nowMs - this.#syncedAtMs >= SYNC_EVERY_MS
  }

  #isHolder(condition: string): boolean {
    return this.#state.holders[condition]?.[this.#parts.nodeId] !== undefined
  }

  /** Own messages that the channel has delivered or given up. */
  #finished(): ReadonlySet<string> {
    const { channel } = this.#parts
    const sent = [...this.#messages].filter(([id, stage]) => stage === 'sent' && !channel.isPending(id))
    return new Set(sent.map(([id]) => id))
  }

  #enqueue(change?: (state: ClusterState) => ClusterState): Promise<void> {
    this.#isSyncing = true
    const run = this.#lastSync.then(() => this.#sync(change))
    const done = run.finally(() => {
      if (this.#lastSync === done) this.#isSyncing = false
    })
    this.#lastSync = done
    return done
  }

  /** Synchronizes this node with the shared document, and applies `change` to both. Never rejects. */
  async #sync(change: (state: ClusterState) => ClusterState = (state) => state): Promise<void> {
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) if (await this.#exchange(change)) break
    } catch (error) {
      this.#disconnected(error, change)
    }
    this.#dispatch()
  }

  /** False after a write conflict. Rejects if the document is unreachable. */
  async #exchange(change: (state: ClusterState) => ClusterState): Promise<boolean> {
    const { document } = this.#parts
    const found = await document.read()
    const nowMs = this.#nowMs()
    this.#reconnected(nowMs)
    const base = change(this.#baseOf(found, nowMs))
    this.#trackChanges(base, nowMs)
    const renews = nowMs - this.#renewedAtMs >= RENEW_EVERY_MS
    const finished = this.#finished()
    const isGone = (key: string): boolean => nowMs - (this.#seenSince.get(key) ?? nowMs) >= GONE_AFTER_MS
    const next = advance(base, this.#view({ nowMs, renews, finished, isGone }))
    const body = JSON.stringify(next)
    if (body !== found?.body && !(await document.write(body, found?.revision ?? 0))) return false
    this.#syncedAtMs = nowMs
    if (renews) this.#renewedAtMs = nowMs
    for (const id of finished) this.#messages.delete(id)
    this.#hasOwnChanges = false
    this.#adopt(next)
    return true
  }

  /** The state to start from; the copy of this node if the document was lost. */
  #baseOf(found: StoredDocument | undefined, nowMs: number): ClusterState {
    if (found === undefined) return this.#state
    const shared = JSON.parse(found.body) as ClusterState
    if (!this.#hasOwnChanges) return shared
    return merged(shared, { own: this.#state, node: this.#parts.nodeId, nowMs })
  }

  /** The document is unreachable. If that lasts, this node sends its alerts itself. */
  #disconnected(error: unknown, change: (state: ClusterState) => ClusterState): void {
    const nowMs = this.#nowMs()
    this.#lostSinceMs ??= nowMs
    const before = this.#state
    let next = change(before)
    if (nowMs - this.#lostSinceMs >= ALONE_AFTER_MS) {
      if (!this.#isAlone) {
        this.#isAlone = true
        const advice = 'This node sends its cluster alerts itself, with the same ids as other nodes.'
        this.#parts.log.warn('cannot coordinate cluster alerts', { error: errorFields(error), advice })
      }
      // The state of other nodes is unknown.
      next = advance(next, this.#view({ nowMs, renews: false, finished: this.#finished(), isGone: () => false }))
      for (const id of this.#finished()) this.#messages.delete(id)
    }
    if (JSON.stringify(next) === JSON.stringify(before)) return
    this.#hasOwnChanges = true
    this.#adopt(next)
  }

  /** The document is reachable. */
  #reconnected(nowMs: number): void {
    if (this.#lostSinceMs === undefined) return
    if (this.#isAlone)
      this.#parts.log.info('cluster alerts are coordinated again', { afterMs: nowMs - this.#lostSinceMs })
    this.#lostSinceMs = undefined
    this.#isAlone = false
    // Other nodes could not renew theirs either: their time starts over.
    this.#seenSince.clear()
  }

  /** Records when entries and claims changed. */
  #trackChanges(state: ClusterState, nowMs: number): void {
    const keys = new Set(keysOf(state))
    for (const key of this.#seenSince.keys()) if (!keys.has(key)) this.#seenSince.delete(key)
    for (const key of keys) if (!this.#seenSince.has(key)) this.#seenSince.set(key, nowMs)
  }

  #view(now: Pick<NodeView, 'nowMs' | 'renews' | 'finished' | 'isGone'>): NodeView {
    const { nodeId, nodeName, conditions, remindEveryMs, newId } = this.#parts
    return { ...now, node: nodeId, nodeName, conditions, holding: this.#holding, remindEveryMs, newId }
  }

  #adopt(next: ClusterState): void {
    const { log, copy } = this.#parts
    for (const { id, rule, scope, state, summary, node } of next.alerts) {
      const before = this.#state.alerts.find((record) => record.id === id)
      const fields = { alert: id, rule, scope, node }
      if (before === undefined && state === 'firing') log.warn('an alert fires', { ...fields, summary })
      else if (before?.state === 'firing' && state === 'resolved') log.info('an alert is resolved', fields)
    }
    this.#state = next
    const body = JSON.stringify(next)
    if (body === this.#savedBody) return
    this.#savedBody = body
    const saved = copy.save(next).catch((error: unknown) => {
      log.error('could not save the state of alerts', { error: errorFields(error) })
    })
    this.#track(saved)
  }

  /** Sends own messages. */
  #dispatch(): void {
    const { nodeId, channel } = this.#parts
    for (const { notice, node } of this.#state.outbox) {
      if (node !== nodeId || this.#messages.has(notice.id)) continue
      this.#messages.set(notice.id, 'sending')
      const sent = channel.send(notice).then((isTaken) => {
        if (isTaken) this.#messages.set(notice.id, 'sent')
        else this.#messages.delete(notice.id)
      })
      this.#track(sent)
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#work.delete(tracked))
    this.#work.add(tracked)
  }

  #shown(record: AlertRecord): Alert {
    return shownAlert(record, this.#state.silences[conditionOf(record)], this.#nowMs())
  }

  /** Whole milliseconds. */
  #nowMs(): number {
    return Math.floor(this.#parts.nowMs())
  }
}

/** Whose calls were counted, for a condition over all nodes. */
function countedText(total: TotalSignals | undefined): string {
  if (total === undefined) return ''
  if (total.isPartial) return ' (counted on this node only: the figures of other nodes cannot be read)'
  return total.nodes === 1 ? '' : ` (${total.nodes} nodes together)`
}
