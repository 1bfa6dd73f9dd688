import { SluiceError } from '../errors.ts'
import type { AbortSignalLike } from '../system/abort.ts'

/** A place in a queue. */
interface Ticket {
  /** Resolves when the turn of this caller has come; rejects when the queue closes. */
  readonly turn: Promise<void>
  /** Leaves the queue, in turn or not. */
  leave(): void
}

interface Waiter {
  readonly admit: () => void
  readonly reject: (reason: unknown) => void
}

/**
 * Callers waiting for the same key proceed one after the other, in order of arrival: only the first of them asks the
 * store again, and no caller overtakes another. Queues of different keys are independent.
 */
export class KeyQueue {
  readonly #queues = new Map<string, Set<Waiter>>()
  readonly #closeListeners = new Set<() => void>()
  #waiting = 0
  #closed = false

  /** Callers waiting or in turn, over all keys. */
  get size(): number {
    return this.#waiting
  }

  /** Keys with waiting callers. */
  get keys(): number {
    return this.#queues.size
  }

  /** Aborts when the queue closes: for callers in turn that wait for something else. */
  get closing(): AbortSignalLike {
    return {
      aborted: this.#closed,
      get reason() {
        return closedError()
      },
      addEventListener: (_type, listener) => void this.#closeListeners.add(listener),
      removeEventListener: (_type, listener) => void this.#closeListeners.delete(listener),
    }
  }

  /** Joins the end of the key's queue. */
  join(key: string): Ticket {
    if (this.#closed) throw closedError()
    let queue = this.#queues.get(key)
    if (queue === undefined) {
      queue = new Set()
      this.#queues.set(key, queue)
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { admit: resolve, reject }
    // A caller that leaves before its turn must not cause an unhandled rejection.
    promise.catch(() => undefined)
    if (queue.size === 0) resolve()
    queue.add(waiter)
    this.#waiting++
    return { turn: promise, leave: () => this.#leave(key, waiter) }
  }

  /** Rejects all callers with `SLUICE_CLOSED`. */
  close(): void {
    this.#closed = true
    for (const queue of this.#queues.values()) for (const waiter of queue) waiter.reject(closedError())
    for (const listener of [...this.#closeListeners]) listener()
    this.#queues.clear()
    this.#waiting = 0
  }

  #leave(key: string, waiter: Waiter): void {
    const queue = this.#queues.get(key)
    if (queue?.delete(waiter) !== true) return
    this.#waiting--
    const next = queue.values().next()
    if (next.done === true) this.#queues.delete(key)
    else next.value.admit()
  }
}

function closedError(): SluiceError {
  return new SluiceError('SLUICE_CLOSED', { problem: 'the limiter was closed while a call waited for its turn' })
}
