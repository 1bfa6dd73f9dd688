import type { StoredDocument } from '@sluice/config-store'
import type { Alert } from '@sluice/contract'
import type { Logger, NowMs } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { Watch } from './alert-record.ts'
import { nextWatch, shownAlert } from './alert-record.ts'
import type { AlertRule, AlertRuleName } from './alert-rule.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { readingOf, summaryOf } from './alert-signals.ts'
import type { AlertActor, AlertChannel, SilenceOrder } from './alerts.ts'
import type { ClusterState, Measured, NodeView, SharedDocument } from './cluster-state.ts'
import { advance, keysOf, merged, NO_ALERTS } from './cluster-state.ts'

/** Keeps what a node knows of the alerts of its cluster over restarts. */
export interface ClusterCopyStore {
  load(): ClusterState | undefined
  /** Rejects when it could not be written. */
  save(state: ClusterState): Promise<void>
}

/** What {@link ClusterAlerts} work with. */
export interface ClusterAlertsParts {
  readonly document: SharedDocument
  /** Those that are about what nodes share. The same on all nodes. */
  readonly rules: readonly AlertRule[]
  /** See {@link AlertMonitorParts}. */
  readonly remindEveryMs: number
  /** Names this node alone, also after a restart. */
  readonly nodeId: string
  /** Names it for people. */
  readonly nodeName: string
  readonly nowMs: NowMs
  readonly newId: () => string
  readonly channel: AlertChannel
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly copy: ClusterCopyStore
}

const SYNC_EVERY_MS = 5000
const RENEW_EVERY_MS = 15_000

/** A node that has not renewed an entry or claim for so long is gone. */
const GONE_AFTER_MS = 60_000

/** Without the shared document for so long, the node goes on alone. */
const ALONE_AFTER_MS = 30_000

/** So many nodes may be quicker in a row before it is left to the next second. */
const MOST_TRIES = 10

/**
 * Alerts about what nodes share, told once for all nodes. docs/decisions/2026-11-17-cluster-alerts.md has the invariants and the
 * failure cases. Does nothing by itself: time passes when somebody calls {@link ClusterAlerts.evaluate}.
 */
export class ClusterAlerts {
  readonly #parts: ClusterAlertsParts
  readonly #watches = new Map<AlertRuleName, Watch>()
  readonly #holding = new Map<AlertRuleName, Measured>()
  /** When each entry and claim of others was first seen as it is. */
  readonly #seenSince = new Map<string, number>()
  /** Own messages: `sent` when the channel has taken one over. */
  readonly #messages = new Map<string, 'sending' | 'sent'>()
  readonly #work = new Set<Promise<void>>()
  /** The shared state as this node last saw or left it. */
  #state: ClusterState
  #savedBody: string
  /** Whether the state has changes that are not in the shared document. */
  #hasOwnChanges = false
  #lostSinceMs: number | undefined
  #isAlone = false
  #syncedAtMs = Number.NEGATIVE_INFINITY
  #renewedAtMs = Number.NEGATIVE_INFINITY
  /** Changes of the document come one after the other. */
  #turn: Promise<void> = Promise.resolve()
  #isSyncing = false

  /** Goes on with what this node knew when it ended. */
  constructor(parts: ClusterAlertsParts) {
    this.#parts = parts
    this.#state = parts.copy.load() ?? NO_ALERTS
    this.#savedBody = JSON.stringify(this.#state)
    const nowMs = this.#nowMs()
    for (const { name } of parts.rules) {
      // Its condition held when this node was last there: it has to be gone for as long as any other before it counts as gone.
      if (this.#isHolder(name)) this.#watches.set(name, { state: 'firing', since: nowMs })
    }
  }

  /** Looks at what is known now, and changes the shared state where that is due. To be called about once a second. */
  evaluate(signals: SignalSnapshot): void {
    const nowMs = this.#nowMs()
    for (const rule of this.#parts.rules) this.#look(rule, readingOf(rule, signals), nowMs)
    if (!this.#isSyncing && this.#isDue(nowMs)) this.#track(this.#enqueue())
  }

  /** Newest first. */
  list(): readonly Alert[] {
    return this.#state.alerts.map((record) => this.#shown(record)).reverse()
  }

  /** Undefined when there is no such alert. */
  acknowledge(id: string, { by, note }: AlertActor): Promise<Alert | undefined> {
    const acknowledgement = { at: this.#nowMs(), by, ...(note === undefined ? {} : { note }) }
    return this.#changeAlert(id, (state) => ({
      ...state,
      alerts: state.alerts.map((record) => (record.id === id ? { ...record, acknowledgement } : record)),
    }))
  }

  /** Undefined when there is no such alert. */
  silence(id: string, { by, note, durationMs }: SilenceOrder): Promise<Alert | undefined> {
    const at = this.#nowMs()
    const silence = { at, by, ...(note === undefined ? {} : { note }), until: at + durationMs }
    return this.#changeAlert(id, (state) => {
      const record = state.alerts.find((each) => each.id === id)
      return record === undefined ? state : { ...state, silences: { ...state.silences, [record.rule]: silence } }
    })
  }

  /** Resolves when everything that was begun so far is done. */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  async #changeAlert(id: string, change: (state: ClusterState) => ClusterState): Promise<Alert | undefined> {
    await this.#enqueue(change)
    const record = this.#state.alerts.find((each) => each.id === id)
    return record === undefined ? undefined : this.#shown(record)
  }

  #look(rule: AlertRule, value: number | undefined, nowMs: number): void {
    const { name, threshold, unit } = rule
    const before = this.#watches.get(name) ?? { state: 'ok', since: nowMs }
    const holds = value !== undefined && value > threshold
    const after = nextWatch(before, { holds, nowMs }, rule)
    this.#watches.set(name, after)
    if (after.state !== 'firing') this.#holding.delete(name)
    else if (holds) this.#holding.set(name, { value, threshold, unit, summary: summaryOf(rule, value) })
    else if (!this.#holding.has(name)) {
      // After a restart: what was measured before it is not known any more.
      this.#holding.set(name, { value: threshold, threshold, unit, summary: summaryOf(rule, threshold) })
    }
  }

  #isDue(nowMs: number): boolean {
    const isOutOfDate = this.#parts.rules.some(({ name }) => this.#holding.has(name) !== this.#isHolder(name))
    const isLost = this.#lostSinceMs !== undefined
    return isOutOfDate || isLost || this.#finished().size > 0 || nowMs - this.#syncedAtMs >= SYNC_EVERY_MS
  }

  #isHolder(rule: AlertRuleName): boolean {
    return this.#state.holders[rule]?.[this.#parts.nodeId] !== undefined
  }

  /** Own messages that the channel has taken over and is done with. */
  #finished(): ReadonlySet<string> {
    const { channel } = this.#parts
    const sent = [...this.#messages].filter(([id, stage]) => stage === 'sent' && !channel.isPending(id))
    return new Set(sent.map(([id]) => id))
  }

  #enqueue(change?: (state: ClusterState) => ClusterState): Promise<void> {
    this.#isSyncing = true
    const run = this.#turn.then(() => this.#sync(change))
    const done = run.finally(() => {
      if (this.#turn === done) this.#isSyncing = false
    })
    this.#turn = done
    return done
  }

  /** Brings the document and this node up to date with each other; `change` is made along with it. Never rejects. */
  async #sync(change: (state: ClusterState) => ClusterState = (state) => state): Promise<void> {
    try {
      for (let tries = 0; tries < MOST_TRIES; tries++) if (await this.#exchange(change)) break
    } catch (error) {
      this.#lose(error, change)
    }
    this.#dispatch()
  }

  /** False when another node was quicker. Rejects when the document cannot be reached. */
  async #exchange(change: (state: ClusterState) => ClusterState): Promise<boolean> {
    const { document } = this.#parts
    const found = await document.read()
    const nowMs = this.#nowMs()
    this.#find(nowMs)
    const base = change(this.#baseOf(found, nowMs))
    this.#see(base, nowMs)
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

  /** The state to go on from: where the document was lost, the copy of this node. */
  #baseOf(found: StoredDocument | undefined, nowMs: number): ClusterState {
    if (found === undefined) return this.#state
    const shared = JSON.parse(found.body) as ClusterState
    if (!this.#hasOwnChanges) return shared
    return merged(shared, { own: this.#state, node: this.#parts.nodeId, nowMs })
  }

  /** The document cannot be reached: goes on alone when that lasts. */
  #lose(error: unknown, change: (state: ClusterState) => ClusterState): void {
    const nowMs = this.#nowMs()
    this.#lostSinceMs ??= nowMs
    const before = this.#state
    let next = change(before)
    if (nowMs - this.#lostSinceMs >= ALONE_AFTER_MS) {
      if (!this.#isAlone) {
        this.#isAlone = true
        const advice = 'This node tells its cluster alerts itself, under the ids that other nodes use.'
        this.#parts.log.warn('cluster alerts cannot be coordinated', { error: errorFields(error), advice })
      }
      // Of others nothing is known: they are neither gone nor there.
      next = advance(next, this.#view({ nowMs, renews: false, finished: this.#finished(), isGone: () => false }))
      for (const id of this.#finished()) this.#messages.delete(id)
    }
    if (JSON.stringify(next) === JSON.stringify(before)) return
    this.#hasOwnChanges = true
    this.#adopt(next)
  }

  /** The document can be reached. */
  #find(nowMs: number): void {
    if (this.#lostSinceMs === undefined) return
    if (this.#isAlone)
      this.#parts.log.info('cluster alerts are coordinated again', { afterMs: nowMs - this.#lostSinceMs })
    this.#lostSinceMs = undefined
    this.#isAlone = false
    // Others could not renew theirs either: they have as long for it as at first.
    this.#seenSince.clear()
  }

  /** Takes note of since when entries and claims are as they are. */
  #see(state: ClusterState, nowMs: number): void {
    const keys = new Set(keysOf(state))
    for (const key of this.#seenSince.keys()) if (!keys.has(key)) this.#seenSince.delete(key)
    for (const key of keys) if (!this.#seenSince.has(key)) this.#seenSince.set(key, nowMs)
  }

  #view(now: Pick<NodeView, 'nowMs' | 'renews' | 'finished' | 'isGone'>): NodeView {
    const { nodeId, nodeName, rules, remindEveryMs, newId } = this.#parts
    const holding = this.#holding
    return { ...now, node: nodeId, nodeName, rules: rules.map(({ name }) => name), holding, remindEveryMs, newId }
  }

  #adopt(next: ClusterState): void {
    const { log, copy } = this.#parts
    for (const { id, rule, state, summary, node } of next.alerts) {
      const before = this.#state.alerts.find((record) => record.id === id)
      const fields = { alert: id, rule, scope: 'cluster', node }
      if (before === undefined && state === 'firing') log.warn('an alert fires', { ...fields, summary })
      else if (before?.state === 'firing' && state === 'resolved') log.info('an alert is resolved', fields)
    }
    this.#state = next
    const body = JSON.stringify(next)
    if (body === this.#savedBody) return
    this.#savedBody = body
    const saved = copy.save(next).catch((error: unknown) => {
      log.error('the state of alerts could not be saved', { error: errorFields(error) })
    })
    this.#track(saved)
  }

  /** Hands own messages to the channel. */
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

  #shown(record: ClusterState['alerts'][number]): Alert {
    return shownAlert(record, this.#state.silences[record.rule], this.#nowMs())
  }

  /** Whole milliseconds. */
  #nowMs(): number {
    return Math.floor(this.#parts.nowMs())
  }
}
