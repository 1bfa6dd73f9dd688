/** An undelivered message. */
export interface PendingDelivery<T> {
  readonly state: 'pending'
  /** The same for every attempt, also after a restart: receivers detect duplicates by it. */
  readonly idempotencyKey: string
  readonly message: T
  /** When it was added, in milliseconds since 1970. */
  readonly addedAt: number
  /** Failed attempts so far. */
  readonly tries: number
}

/** A message that is no longer attempted, unless redelivered. */
export interface DeadLetter<T> {
  readonly state: 'dead'
  readonly idempotencyKey: string
  readonly message: T
  /** When it was added, in milliseconds since 1970. */
  readonly addedAt: number
  /** Failed attempts. */
  readonly tries: number
  /** When the last attempt failed, in milliseconds since 1970. */
  readonly failedAt: number
  /** Reason of the last failure. */
  readonly reason: string
}

/** The stored state of a message: plain data. */
export type DeliveryRecord<T> = PendingDelivery<T> | DeadLetter<T>

/** Changes since the last save. */
export interface DeliveryChanges<T> {
  /** New or changed records; each replaces the one with the same idempotency key. */
  readonly put: readonly DeliveryRecord<T>[]
  /** Idempotency keys of removed records; some may never have been saved. */
  readonly removed: readonly string[]
}

/** Persists undelivered messages. It belongs to one queue: two queues that load the same store would both deliver. */
export interface DeliveryStore<T> {
  /** All saved records, in the order in which they were added. */
  readonly load: () => Promise<readonly DeliveryRecord<T>[]>
  /** Saves all changes atomically. Calls never overlap. */
  readonly save: (changes: DeliveryChanges<T>) => Promise<void>
}

/**
 * Saves changes to a store, one save at a time: changes during a save go into the next one together. Failed saves are
 * retried with the next change.
 */
export class DeliveryJournal<T> {
  readonly #store: DeliveryStore<T> | undefined
  readonly #onError: (error: unknown) => void
  /** By idempotency key; undefined if the record was removed. */
  #changes = new Map<string, DeliveryRecord<T> | undefined>()
  #saving: Promise<boolean> = Promise.resolve(true)
  #next: Promise<boolean> | undefined

  constructor(store: DeliveryStore<T> | undefined, onError: (error: unknown) => void) {
    this.#store = store
    this.#onError = onError
  }

  /** Records a new state, or a removal. Resolves after the save was attempted: true if it succeeded. Never rejects. */
  change(idempotencyKey: string, record: DeliveryRecord<T> | undefined): Promise<boolean> {
    if (this.#store === undefined) return Promise.resolve(false)
    this.#changes.delete(idempotencyKey)
    this.#changes.set(idempotencyKey, record)
    return this.flush()
  }

  /** Resolves after saving all changes so far was attempted: true if it succeeded. Never rejects. */
  flush(): Promise<boolean> {
    if (this.#changes.size === 0) return this.#saving
    this.#next ??= this.#saving.then(() => {
      this.#next = undefined
      this.#saving = this.#save()
      return this.#saving
    })
    return this.#next
  }

  async #save(): Promise<boolean> {
    const changes = this.#changes
    this.#changes = new Map()
    const put = [...changes.values()].filter((record) => record !== undefined)
    const removed = Array.from(changes).flatMap(([key, record]) => (record === undefined ? [key] : []))
    try {
      await this.#store?.save({ put, removed })
      return true
    } catch (error) {
      // Changes that arrived meanwhile are newer and take precedence.
      this.#changes = new Map([...changes, ...this.#changes])
      this.#onError(error)
      return false
    }
  }
}
