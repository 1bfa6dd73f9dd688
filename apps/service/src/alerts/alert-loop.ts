import type { Logger, Sleep } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { AlertDesk } from './alert-monitor.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { mergeSignals } from './alert-signals.ts'

/** What {@link AlertLoop} works with. */
export interface AlertLoopParts {
  readonly desk: Pick<AlertDesk, 'evaluate'>
  /** What every thread knows. */
  readonly gather: () => Promise<readonly SignalSnapshot[]>
  readonly sleep: Sleep
  readonly log: Pick<Logger, 'error'>
}

const EVERY_MS = 1000

/** Lets a desk look at what the threads know, once a second, from the start to `close`. */
export class AlertLoop {
  readonly #parts: AlertLoopParts
  readonly #closing = new AbortController()
  readonly #running: Promise<void>

  constructor(parts: AlertLoopParts) {
    this.#parts = parts
    this.#running = this.#run()
  }

  /** Resolves when the last look is over. */
  close(): Promise<void> {
    this.#closing.abort()
    return this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await this.#look()
      await this.#parts.sleep(EVERY_MS, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
    }
  }

  async #look(): Promise<void> {
    const { desk, gather, log } = this.#parts
    try {
      desk.evaluate(mergeSignals(await gather()))
    } catch (error) {
      log.error('alerts could not be looked at', { error: errorFields(error) })
    }
  }
}
