import type { AlertOptions } from '../settings/alert-settings.ts'
import { AlertMonitor } from './alert-monitor.ts'
import type { AlertNotice, AlertState } from './alert-record.ts'
import { alertRules } from './alert-rule.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { mergeSignals } from './alert-signals.ts'
import { START_MS, TestLog } from './alerts.test.support.ts'
import type { StatePart } from './state-file.ts'

/** A channel that records notices. */
export class TestChannel {
  /** All notices, including rejected ones. */
  readonly given: AlertNotice[] = []
  /** Whether it accepts notices. */
  takes = true

  send(notice: AlertNotice): Promise<boolean> {
    this.given.push(notice)
    return Promise.resolve(this.takes)
  }
}

/** A part of a file, in memory. */
export class TestStateStore implements StatePart<AlertState> {
  /** Every saved state as JSON. */
  readonly saved: string[] = []
  fails = false

  load(): AlertState | undefined {
    const last = this.saved.at(-1)
    return last === undefined ? undefined : JSON.parse(last)
  }

  save(state: AlertState): Promise<void> {
    if (this.fails) return Promise.reject(new Error('the disk is full'))
    this.saved.push(JSON.stringify(state))
    return Promise.resolve()
  }
}

export interface TestMonitorOptions {
  readonly rules?: AlertOptions
  readonly remindEveryMs?: number
  readonly store?: TestStateStore
  readonly channel?: TestChannel
  /** Prefix of alert ids. */
  readonly ids?: string
}

/** A monitor whose clock the test sets. */
export class TestMonitor {
  readonly monitor: AlertMonitor
  readonly channel: TestChannel
  readonly log: TestLog = new TestLog()
  nowMs: number = START_MS

  constructor({
    rules = {},
    remindEveryMs = 0,
    store,
    channel = new TestChannel(),
    ids = 'a',
  }: TestMonitorOptions = {}) {
    this.channel = channel
    let count = 0
    this.monitor = new AlertMonitor({
      rules: alertRules(rules),
      remindEveryMs,
      node: 'node-1',
      nowMs: () => this.nowMs,
      newId: () => `${ids}${++count}`,
      channel,
      log: this.log,
      store,
    })
  }

  /** Evaluates `ms` milliseconds after the start and waits for the effects. */
  async lookAt(ms: number, signals: Partial<SignalSnapshot> = {}): Promise<void> {
    this.nowMs = START_MS + ms
    this.monitor.evaluate({ ...mergeSignals([]), ...signals })
    await this.monitor.settled()
  }

  /** Kind and alert id of each notice. */
  get told(): readonly string[] {
    return this.channel.given.map(({ kind, alert }) => `${kind} ${alert.id}`)
  }
}

/** 30 of 100 checks denied. */
export const DENIALS: Partial<SignalSnapshot> = { checks: { hits: 30, total: 100 } }

/** 2 of 100 calls of the store failed. */
export const ERRORS: Partial<SignalSnapshot> = { storeCalls: { hits: 2, total: 100 } }
