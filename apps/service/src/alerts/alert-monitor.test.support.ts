import type { DeadLetter } from '@sluice/contract'
import type { AlertOptions } from '../alert-settings.ts'
import type { AlertState, AlertStateStore } from './alert-monitor.ts'
import { AlertMonitor } from './alert-monitor.ts'
import type { AlertNotice } from './alert-record.ts'
import { alertRules } from './alert-rule.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { mergeSignals } from './alert-signals.ts'
import { START_MS, TestLog } from './alerts.test.support.ts'
import type { AlertChannel, RedeliverOutcome } from './alerts.ts'

/** An channel that remembers what it was given, and takes it when it may. */
export class TestOutlet implements AlertChannel {
  /** Everything it was given, also what it did not take. */
  readonly given: AlertNotice[] = []
  readonly letters: DeadLetter[] = []
  takes = true

  send(notice: AlertNotice): Promise<boolean> {
    this.given.push(notice)
    return Promise.resolve(this.takes)
  }

  isPending(): boolean {
    return false
  }

  deadLetters(): readonly DeadLetter[] {
    return this.letters
  }

  redeliver(id: string): RedeliverOutcome {
    return this.letters.some((letter) => letter.id === id) ? 'queued' : 'unknown'
  }
}

/** A store in memory that keeps what a file would. */
export class TestStateStore implements AlertStateStore {
  /** Everything that was saved, as text. */
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

/** What the monitor of a test is made with. */
export interface TestDeskOptions {
  readonly rules?: AlertOptions
  readonly remindEveryMs?: number
  readonly store?: TestStateStore
  readonly channel?: TestOutlet
  /** Begins the ids of its alerts. */
  readonly ids?: string
}

/** A monitor with its time in the hands of the test. */
export class TestDesk {
  readonly monitor: AlertMonitor
  readonly channel: TestOutlet
  readonly log: TestLog = new TestLog()
  nowMs: number = START_MS

  constructor({ rules = {}, remindEveryMs = 0, store, channel = new TestOutlet(), ids = 'a' }: TestDeskOptions = {}) {
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

  /** Looks at so many milliseconds after the start, and waits for what follows. */
  async lookAt(ms: number, signals: Partial<SignalSnapshot> = {}): Promise<void> {
    this.nowMs = START_MS + ms
    this.monitor.evaluate({ ...mergeSignals([]), ...signals })
    await this.monitor.settled()
  }

  /** The notices so far: their kinds and the alerts they are about. */
  get told(): readonly string[] {
    return this.channel.given.map(({ kind, alert }) => `${kind} ${alert.id}`)
  }
}

/** 30 of 100 checks refused. */
export const DENIALS: Partial<SignalSnapshot> = { checks: { hits: 30, total: 100 } }

/** 2 of 100 calls of the store failed. */
export const ERRORS: Partial<SignalSnapshot> = { storeCalls: { hits: 2, total: 100 } }
