import type { Random, Timers } from '@sluice/core'

export interface HealthCheckerParts {
  readonly intervalMs: number
  readonly timeoutMs: number
  /** Successes in a row that make an instance healthy. */
  readonly healthyAfter: number
  /** Failures in a row that make it unhealthy. */
  readonly unhealthyAfter: number
  readonly timers: Timers
  readonly random: Random
  /** Resolves with the status of the answer. */
  readonly check: (signal: AbortSignal) => Promise<number>
  /** Called whenever health changes. `problem` is why it is unhealthy. */
  readonly onChange: (isHealthy: boolean, problem: string | undefined) => void
}

/**
 * Asks one instance again and again whether it is well: it is if it answers with 2xx in time.
 *
 * The first check decides at once; after it, changes need several results in a row.
 */
export class HealthChecker {
  readonly #parts: HealthCheckerParts
  #isHealthy: boolean | undefined
  /** Results in a row that differ from what is known. */
  #differing = 0
  #isClosed = false
  #cancel: () => void = () => undefined

  constructor(parts: HealthCheckerParts) {
    this.#parts = parts
  }

  /** Resolves after the first check, whatever it says. */
  start(): Promise<void> {
    return this.#run()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  async #run(): Promise<void> {
    const { timers, random, intervalMs } = this.#parts
    const problem = await this.#check()
    if (this.#isClosed) return
    this.#apply(problem)
    // Gateways that started together do not all ask at the same instant.
    const jitter = 0.9 + random.nextUint32() / 2 ** 32 / 5
    this.#cancel = timers.schedule(intervalMs * jitter, () => void this.#run())
  }

  /** Why the instance is not well; undefined: it is. */
  async #check(): Promise<string | undefined> {
    const { check, timers, timeoutMs } = this.#parts
    const abort = new AbortController()
    const timeout = timers.schedule(timeoutMs, () => abort.abort(new Error(`no answer within ${timeoutMs} ms`)))
    this.#cancel = () => {
      timeout()
      abort.abort(new Error('checks have ended'))
    }
    try {
      const status = await check(abort.signal)
      return status >= 200 && status <= 299 ? undefined : `status ${status}`
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    } finally {
      timeout()
    }
  }

  #apply(problem: string | undefined): void {
    const { healthyAfter, unhealthyAfter, onChange } = this.#parts
    const isWell = problem === undefined
    if (isWell === this.#isHealthy) {
      this.#differing = 0
      return
    }
    this.#differing++
    const needed = isWell ? healthyAfter : unhealthyAfter
    if (this.#isHealthy !== undefined && this.#differing < needed) return
    this.#isHealthy = isWell
    this.#differing = 0
    onChange(isWell, problem)
  }
}
