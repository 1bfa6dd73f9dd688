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
