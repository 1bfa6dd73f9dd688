/** A message that is to be delivered. */
export interface PendingDelivery<T> {
  readonly state: 'pending'
  /** The same for every try, also after a restart: the receiver knows by it what it has already got. */
  readonly idempotencyKey: string
  readonly message: T
  /** When it was added, in milliseconds since 1970. */
  readonly addedAt: number
  /** Tries that failed so far. */
  readonly tries: number
}

/** A message that is not tried any more, until somebody asks for it. */
export interface DeadLetter<T> {
  readonly state: 'dead'
  readonly idempotencyKey: string
  readonly message: T
  /** When it was added, in milliseconds since 1970. */
  readonly addedAt: number
  /** Tries that failed. */
  readonly tries: number
  /** When it was given up, in milliseconds since 1970. */
  readonly failedAt: number
  /** What the last try failed with. */
  readonly reason: string
}

/** What is kept of a message: plain data. */
export type DeliveryRecord<T> = PendingDelivery<T> | DeadLetter<T>

/** What is different since the last save. */
export interface DeliveryChanges<T> {
  /** Records that are new or have changed; each replaces the one with the same idempotency key. */
  readonly put: readonly DeliveryRecord<T>[]
  /** Idempotency keys whose records are gone; some may never have been saved. */
  readonly removed: readonly string[]
}

/** Keeps what is not delivered yet over restarts. It belongs to one queue: two that load the same would both deliver. */
export interface DeliveryStore<T> {
  /** Everything that was saved, in the order in which it was added. */
  readonly load: () => Promise<readonly DeliveryRecord<T>[]>
  /** Saves all changes or none of them. Never called again before it has settled. */
  readonly save: (changes: DeliveryChanges<T>) => Promise<void>
}

/**
 * Brings changes to a store, one save at a time: what changes during a save goes into the next one, all together. What
 * could not be saved is tried again with the next change.
 */
export class DeliveryJournal<T> {
  readonly #store: DeliveryStore<T> | undefined
  readonly #onError: (error: unknown) => void
  /** By idempotency key; undefined when the record is gone. */
  #changes = new Map<string, DeliveryRecord<T> | undefined>()
  #saving: Promise<boolean> = Promise.resolve(true)
  #next: Promise<boolean> | undefined

  constructor(store: DeliveryStore<T> | undefined, onError: (error: unknown) => void) {
    this.#store = store
    this.#onError = onError
  }

  /** Notes that a record is now this, or is gone. Resolves when that is tried: to true when it is saved. Never rejects. */
  change(idempotencyKey: string, record: DeliveryRecord<T> | undefined): Promise<boolean> {
    if (this.#store === undefined) return Promise.resolve(false)
    this.#changes.delete(idempotencyKey)
    this.#changes.set(idempotencyKey, record)
    return this.flush()
  }

  /** Resolves when all changes so far are tried to be saved: to true when they are. Never rejects. */
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
      // Behind what changed meanwhile, which is newer.
      this.#changes = new Map([...changes, ...this.#changes])
      this.#onError(error)
      return false
    }
  }
}
