import { type BackoffOptions, resolveBackoff } from '../backoff.ts'
import { requireInteger, requireName, requireNumber } from '../option-range.ts'
import { RetriesExhausted, type RetryOptions, retry } from '../retry.ts'
import { type NowMs, type Random, readClock, type Sleep } from '../system.ts'
import { type DeliveryAttempt, DeliverySlots, runAttempt } from './delivery-attempt.ts'
import {
  type DeadLetter,
  DeliveryJournal,
  type DeliveryRecord,
  type DeliveryStore,
  type PendingDelivery,
} from './delivery-store.ts'

/** How messages are delivered, and how many are kept. */
export interface DeliveryQueueOptions<T> extends BackoffOptions, Pick<RetryOptions, 'shouldRetry' | 'retryAfterMs'> {
  /** Makes one try; a rejection is a failure. It must pass the idempotency key on, so that the receiver can tell. */
  readonly deliver: (attempt: DeliveryAttempt<T>) => Promise<void>
  /** Makes a new idempotency key, of at least one character and never the same again: a unique id. */
  readonly newKey: () => string
  /** The clock, for when messages were added and given up. */
  readonly nowMs: NowMs
  /** Waits between tries, and for a try that takes too long. */
  readonly sleep: Sleep
  /** Source of the jitter. */
  readonly random: Random
  /** Where messages survive a restart. Default: nowhere. */
  readonly store?: DeliveryStore<T> | undefined
  /** Tries of one message, those before a restart included, before it is a dead letter; 1 or more. Default 8. */
  readonly maxTries?: number | undefined
  /** How long one try may take, in milliseconds, 1 or more. Default 10,000. */
  readonly timeoutMs?: number | undefined
  /** How many messages may be undelivered at once; further ones are refused. 1 or more. Default 1000. */
  readonly mostPending?: number | undefined
  /** How many tries are made at once; 1 or more. Waiting between tries takes no place. Default 4. */
  readonly mostInFlight?: number | undefined
  /** How many dead letters are kept, the newest; 0 or more. Default 1000. */
  readonly mostDead?: number | undefined
  /** Told of what happens, for logs and counters. Must not throw. */
  readonly onEvent?: ((event: DeliveryEvent<T>) => void) | undefined
}

/** Something that happened to a message. */
export type DeliveryEvent<T> =
  | { readonly type: 'delivered'; readonly delivery: PendingDelivery<T> }
  /** A try failed; the next comes after `delayMs`. */
  | {
      readonly type: 'retrying'
      readonly delivery: PendingDelivery<T>
      readonly error: unknown
      readonly delayMs: number
    }
  | { readonly type: 'dead'; readonly letter: DeadLetter<T>; readonly error: unknown }
  /** A dead letter had to go because there were too many. */
  | { readonly type: 'dead-dropped'; readonly letter: DeadLetter<T> }
  /** The store failed to save; it is tried again with the next change. */
  | { readonly type: 'store-failed'; readonly error: unknown }

/** What became of a message that was added. */
export type AddOutcome =
  /** It will be delivered; when `stored` is false, only if the process lives long enough. */
  | { readonly outcome: 'queued'; readonly idempotencyKey: string; readonly stored: boolean }
  /** A message with this key is already pending or dead; this one was not taken. */
  | { readonly outcome: 'duplicate'; readonly idempotencyKey: string }
  /** There are too many, or the queue is closed; it was not taken. */
  | { readonly outcome: 'full' | 'closed' }

/** How many messages there are, and what became of those before. */
export interface DeliveryCounts {
  /** Not delivered yet: waiting, in flight, or between two tries. */
  readonly pending: number
  /** Tries under way. */
  readonly inFlight: number
  readonly dead: number
  readonly delivered: number
  /** Messages that became dead letters, since the queue was opened. Redelivering one does not take it back. */
  readonly failed: number
  readonly failedTries: number
  /** Messages that were not taken because there were too many. */
  readonly refused: number
  /** Dead letters that had to go because there were too many. */
  readonly deadDropped: number
}

const DEFAULTS = { maxTries: 8, timeoutMs: 10_000, mostPending: 1000, mostInFlight: 4, mostDead: 1000 }
const LONGEST_REASON = 500

/**
 * Delivers messages, each at least once, in no particular order: a failed try is followed by another after a growing wait
 * with jitter; a message that fails too often, or whose failure no further try can help, becomes a dead letter that can be
 * listed, tried again and removed.
 *
 * With a store, messages that are not delivered survive the process. One that was delivered just before a crash may come
 * once more, with the same idempotency key. The number of tries survives too; the wait begins anew.
 */
export class DeliveryQueue<T> {
  readonly #options: DeliveryQueueOptions<T> & typeof DEFAULTS
  readonly #slots: DeliverySlots
  readonly #journal: DeliveryJournal<T>
  readonly #pending = new Map<string, PendingDelivery<T>>()
  /** Oldest first. */
  readonly #dead = new Map<string, DeadLetter<T>>()
  readonly #runs = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  readonly #counts = { delivered: 0, failed: 0, failedTries: 0, refused: 0, deadDropped: 0 }

  private constructor(options: DeliveryQueueOptions<T>) {
    this.#options = resolveOptions(options)
    this.#slots = new DeliverySlots(this.#options.mostInFlight)
    this.#journal = new DeliveryJournal(options.store, (error) => options.onEvent?.({ type: 'store-failed', error }))
  }

  /** A queue that goes on where the store says the last one ended. Rejects with the store's error when it cannot load. */
  static async open<Message>(options: DeliveryQueueOptions<Message>): Promise<DeliveryQueue<Message>> {
    const queue = new DeliveryQueue(options)
    const records = (await options.store?.load()) ?? []
    for (const record of records) queue.#restore(record)
    queue.#dropOldestDead()
    return queue
  }

  /**
   * Takes a message over. Resolves once it is saved, or could not be; it may be delivered before. With an `idempotencyKey`
   * of the caller's, a message is not taken twice while the first is pending or dead.
   */
  async add(message: T, options: { readonly idempotencyKey?: string | undefined } = {}): Promise<AddOutcome> {
    if (this.#closing.signal.aborted) return { outcome: 'closed' }
    const idempotencyKey = requireName('idempotencyKey', options.idempotencyKey ?? this.#options.newKey())
    if (this.#pending.has(idempotencyKey) || this.#dead.has(idempotencyKey)) {
      return { outcome: 'duplicate', idempotencyKey }
    }
    if (this.#pending.size >= this.#options.mostPending) {
      this.#counts.refused++
      return { outcome: 'full' }
    }
    const addedAt = readClock(this.#options.nowMs)
    const stored = this.#put({ state: 'pending', idempotencyKey, message, addedAt, tries: 0 })
    this.#begin(idempotencyKey)
    return { outcome: 'queued', idempotencyKey, stored: await stored }
  }

  /** Whether a message is not delivered yet and not given up. */
  isPending(idempotencyKey: string): boolean {
    return this.#pending.has(idempotencyKey)
  }

  /** What is not tried any more, oldest first. */
  deadLetters(): DeadLetter<T>[] {
    return [...this.#dead.values()]
  }

  /** Tries a dead letter again, as often as a new message and under its old idempotency key. */
  redeliver(idempotencyKey: string): 'queued' | 'unknown' | 'full' | 'closed' {
    if (this.#closing.signal.aborted) return 'closed'
    const letter = this.#dead.get(idempotencyKey)
    if (letter === undefined) return 'unknown'
    if (this.#pending.size >= this.#options.mostPending) return 'full'
    this.#dead.delete(idempotencyKey)
    const { message, addedAt } = letter
    void this.#put({ state: 'pending', idempotencyKey, message, addedAt, tries: 0 })
    this.#begin(idempotencyKey)
    return 'queued'
  }

  /** Forgets a dead letter; false when there is none with this key. */
  discard(idempotencyKey: string): boolean {
    const isKnown = this.#dead.delete(idempotencyKey)
    if (isKnown) void this.#journal.change(idempotencyKey, undefined)
    return isKnown
  }

  /** How many messages there are, and what became of those before. */
  counts(): DeliveryCounts {
    const now = { pending: this.#pending.size, inFlight: this.#slots.taken, dead: this.#dead.size }
    return { ...now, ...this.#counts }
  }

  /** Resolves when nothing is pending: all is delivered or dead, or the queue is closed. */
  async idle(): Promise<void> {
    while (this.#runs.size > 0) await Promise.all(this.#runs)
  }

  /**
   * Aborts what is in flight and waits for it, takes no further message, and saves. What is pending stays in the store.
   * Further calls wait for the same.
   */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.idle()
    await this.#journal.flush()
  }

  /** The same as {@link DeliveryQueue.close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #restore(record: DeliveryRecord<T>): void {
    if (record.state === 'dead') {
      this.#dead.set(record.idempotencyKey, record)
      return
    }
    this.#pending.set(record.idempotencyKey, record)
    this.#begin(record.idempotencyKey)
  }

  #put(record: DeliveryRecord<T>): Promise<boolean> {
    if (record.state === 'dead') this.#dead.set(record.idempotencyKey, record)
    else this.#pending.set(record.idempotencyKey, record)
    return this.#journal.change(record.idempotencyKey, record)
  }

  #begin(idempotencyKey: string): void {
    const run = this.#deliver(idempotencyKey).finally(() => this.#runs.delete(run))
    this.#runs.add(run)
  }

  async #deliver(idempotencyKey: string): Promise<void> {
    const { maxTries, onEvent } = this.#options
    try {
      await retry(() => this.#try(idempotencyKey), {
        ...this.#options,
        // A message that was loaded has had some of its tries; one more is made even when it has had them all.
        maxRetries: Math.max(0, maxTries - 1 - this.#current(idempotencyKey).tries),
        signal: this.#closing.signal,
        onRetry: ({ error, delayMs }) =>
          onEvent?.({ type: 'retrying', delivery: this.#current(idempotencyKey), error, delayMs }),
      })
    } catch (error) {
      // The receiver's own error says more than that the tries are used up.
      const failure = error instanceof RetriesExhausted ? error.lastError : error
      if (!this.#closing.signal.aborted) this.#bury(idempotencyKey, failure)
      return
    }
    const delivery = this.#current(idempotencyKey)
    this.#pending.delete(idempotencyKey)
    this.#counts.delivered++
    void this.#journal.change(idempotencyKey, undefined)
    onEvent?.({ type: 'delivered', delivery })
  }

  async #try(idempotencyKey: string): Promise<void> {
    const { deliver, timeoutMs, sleep } = this.#options
    const closing = this.#closing.signal
    await this.#slots.take(closing)
    const delivery = this.#current(idempotencyKey)
    const { message, tries } = delivery
    try {
      // An async function turns an exception thrown at once into a rejection like any other.
      const run = async (signal: AbortSignal): Promise<void> => deliver({ message, idempotencyKey, tries, signal })
      await runAttempt(run, { timeoutMs, sleep, closing })
    } catch (error) {
      if (!closing.aborted) {
        this.#counts.failedTries++
        void this.#put({ ...delivery, tries: tries + 1 })
      }
      throw error
    } finally {
      this.#slots.free()
    }
  }

  #bury(idempotencyKey: string, error: unknown): void {
    const { message, addedAt, tries } = this.#current(idempotencyKey)
    this.#pending.delete(idempotencyKey)
    const failedAt = readClock(this.#options.nowMs)
    const reason = reasonOf(error)
    const letter: DeadLetter<T> = { state: 'dead', idempotencyKey, message, addedAt, tries, failedAt, reason }
    void this.#put(letter)
    this.#counts.failed++
    this.#options.onEvent?.({ type: 'dead', letter, error })
    this.#dropOldestDead()
  }

  #dropOldestDead(): void {
    for (const [idempotencyKey, letter] of this.#dead) {
      if (this.#dead.size <= this.#options.mostDead) return
      this.discard(idempotencyKey)
      this.#counts.deadDropped++
      this.#options.onEvent?.({ type: 'dead-dropped', letter })
    }
  }

  /** A message that is pending, as it stands now. */
  #current(idempotencyKey: string): PendingDelivery<T> {
    return this.#pending.get(idempotencyKey) as PendingDelivery<T>
  }
}

function resolveOptions<T>(options: DeliveryQueueOptions<T>): DeliveryQueueOptions<T> & typeof DEFAULTS {
  const range = { min: 1, max: Number.MAX_SAFE_INTEGER }
  const { maxTries, timeoutMs, mostPending, mostInFlight, mostDead } = options
  resolveBackoff(options)
  return {
    ...options,
    maxTries: requireInteger('maxTries', maxTries ?? DEFAULTS.maxTries, range),
    timeoutMs: requireNumber('timeoutMs', timeoutMs ?? DEFAULTS.timeoutMs, range),
    mostPending: requireInteger('mostPending', mostPending ?? DEFAULTS.mostPending, range),
    mostInFlight: requireInteger('mostInFlight', mostInFlight ?? DEFAULTS.mostInFlight, range),
    mostDead: requireInteger('mostDead', mostDead ?? DEFAULTS.mostDead, { min: 0, max: range.max }),
  }
}

function reasonOf(error: unknown): string {
  const hasMessage = typeof error === 'object' && error !== null && 'message' in error
  return String(hasMessage ? error.message : error).slice(0, LONGEST_REASON)
}
