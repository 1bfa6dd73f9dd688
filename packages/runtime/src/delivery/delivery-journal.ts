import type { DeliveryRecord, DeliveryStore } from './delivery-store.ts'

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
