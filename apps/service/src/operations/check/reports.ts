import type { CallReport } from '@sluice/contract'
import type { PolicyEngine } from '@sluice/core/policy'
import type { CallReportMessages } from '../../service-context.ts'
import type { ThreadGroup } from '../../thread-messages/message-bus.ts'
import type { OperationHandlers } from '../handler.ts'
import { jsonAnswer } from '../handler.ts'

/** How calls ended that were let through, for limits that are cut while too many fail. */
export function reportHandlers(parts: CallReportsParts): OperationHandlers<'report'> {
  const calls = new CallReports(parts)
  return {
    report: ({ body: { reports } }) => {
      calls.count(reports)
      return jsonAnswer(200, JSON.stringify({ count: reports.length }))
    },
  }
}

/** What reports of calls are counted with. */
export interface CallReportsParts {
  readonly engine: Pick<PolicyEngine, 'report'>
  readonly threads: ThreadGroup<CallReportMessages>
}

/** Maximum number of reports that wait for a broadcast. Reached only if a thread is stuck for seconds. */
const MOST_WAITING = 10_000

/**
 * Counts how calls ended, in all threads of this process. Each thread has an engine of its own, and reports arrive at
 * any of them. So every report goes to all threads: to this one at once, to the others within milliseconds. Reports
 * that arrive during a broadcast wait for the next one, so at most one broadcast is in flight.
 */
export class CallReports {
  readonly #engine: CallReportsParts['engine']
  readonly #threads: ThreadGroup<CallReportMessages>
  #waiting: CallReport[] = []
  #isTelling = false

  constructor({ engine, threads }: CallReportsParts) {
    this.#engine = engine
    this.#threads = threads
    threads.handle('calls.reported', (countedBy, calls) => {
      if (countedBy !== threads.index) this.#countHere(calls)
    })
  }

  /** Counts these. In this thread that is done when it returns. */
  count(reports: readonly CallReport[]): void {
    this.#countHere(reports)
    if (this.#threads.count === 1) return
    // Those that do not fit change little: it is the share of failures that counts, and the others have it from the
    // rest.
    this.#waiting.push(...reports.slice(0, MOST_WAITING - this.#waiting.length))
    if (!this.#isTelling) void this.#tellOthers()
  }

  #countHere(reports: readonly CallReport[]): void {
    for (const { resource, method, failed } of reports) {
      this.#engine.report(method === undefined ? { resource } : { resource, method }, failed)
    }
  }

  /** Never rejects: a thread that cannot be told is one that ends, and the one in its place restarts its count. */
  async #tellOthers(): Promise<void> {
    this.#isTelling = true
    while (this.#waiting.length > 0) {
      const reports = this.#waiting
      this.#waiting = []
      await this.#threads.gather('calls.reported', this.#threads.index, reports).catch(() => undefined)
    }
    this.#isTelling = false
  }
}
