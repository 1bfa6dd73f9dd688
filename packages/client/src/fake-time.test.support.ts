import type { Sleep } from '@sluice/runtime/portable'

interface Wait {
  readonly delayMs: number
  readonly dueMs: number
}

/** Time that passes when the test says so. Its own properties are the options that take it. */
export class HeldTime {
  readonly #waits: number[] = []
  readonly #pending = new Map<() => void, Wait>()
  #nowMs = Date.UTC(2026, 0, 1)
  #notify = (): void => undefined

  readonly nowMs = (): number => this.#nowMs

  readonly sleep: Sleep = (delayMs, signal) =>
    new Promise((resolve, reject) => {
      this.#waits.push(delayMs)
      if (signal?.aborted === true) {
        reject(signal.reason)
        return
      }
      const finish = (): void => {
        this.#pending.delete(finish)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const end = (): void => {
        this.#pending.delete(finish)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', end, { once: true })
      this.#pending.set(finish, { delayMs, dueMs: this.#nowMs + delayMs })
      this.#notify()
    })

  /** Every requested wait, in order, in milliseconds. */
  get waits(): readonly number[] {
    return this.#waits
  }

  /** Waits that go on, in milliseconds from when they began. */
  get pending(): readonly number[] {
    return [...this.#pending.values()].map(({ delayMs }) => delayMs)
  }

  /** Resolves as soon as `count` waits of this length go on. */
  async until(delayMs: number, count = 1): Promise<void> {
    while (this.pending.filter((ms) => ms === delayMs).length < count) {
      await new Promise<void>((resolve) => {
        this.#notify = resolve
      })
    }
  }

  /** Lets a wait of this length pass, as soon as there is one, and all that end by then. */
  async pass(delayMs: number, count = 1): Promise<void> {
    await this.until(delayMs, count)
    this.advance(delayMs)
  }

  advance(ms: number): void {
    this.#nowMs += ms
    for (const [finish, { dueMs }] of [...this.#pending]) if (dueMs <= this.#nowMs) finish()
  }
}
