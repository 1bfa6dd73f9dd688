import { type NowMs, type Random, readClock, type Sleep } from '../clock-and-random.ts'
import { requireInteger, requireName, requireNumber } from '../option-range.ts'
import { type BackoffOptions, RetriesExhausted, type RetryOptions, resolveBackoff, retry } from '../retry.ts'

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

/** Persists undelivered messages. It belongs to one queue: two queues that load the same store would both deliver. */
export interface DeliveryStore<T> {
  /** What was saved last; undefined if nothing was. */
  load(): Records<T> | undefined | Promise<Records<T> | undefined>
  /** Replaces what was saved before, whole or not at all. Calls never overlap. */
  save(records: Records<T>): Promise<void>
}

type Records<T> = readonly DeliveryRecord<T>[]

/** Passed to `deliver` for one attempt. */
export interface DeliveryAttempt<T> {
  readonly message: T
  /** The same for every attempt of this message. */
  readonly idempotencyKey: string
  /** Failed attempts before this one, including those before a restart. */
  readonly tries: number
  /** Aborts on timeout and when the queue is closed. */
  readonly signal: AbortSignal
}

/** Options of {@link DeliveryQueue}. */
export interface DeliveryQueueOptions<T> extends BackoffOptions, Pick<RetryOptions, 'shouldRetry' | 'retryAfterMs'> {
  /**
   * Makes one attempt; a rejection is a failure. It must pass the idempotency key on, so that the receiver can detect
   * duplicates.
   */
  readonly deliver: (attempt: DeliveryAttempt<T>) => Promise<void>
  /** Creates a unique, non-empty idempotency key. */
  readonly newKey: () => string
  /** The clock, for the times in records. */
  readonly nowMs: NowMs
  /** Waits between attempts, and for timeouts. */
  readonly sleep: Sleep
  /** Source of the jitter. */
  readonly random: Random
  /** Persists messages over restarts. Default: none. */
  readonly store?: DeliveryStore<T> | undefined
  /** Attempts per message, including those before a restart, until it becomes a dead letter; 1 or more. Default: 8. */
  readonly maxTries?: number | undefined
  /** Timeout of one attempt in milliseconds, 1 or more. Default: 10,000. */
  readonly timeoutMs?: number | undefined
  /** Maximum number of undelivered messages; further ones are rejected. 1 or more. Default: 1000. */
  readonly mostPending?: number | undefined
  /** Maximum number of concurrent attempts; 1 or more. Waiting between attempts does not count. Default: 4. */
  readonly mostInFlight?: number | undefined
  /** Maximum number of dead letters, the newest are kept; 0 or more. Default: 1000. */
  readonly mostDead?: number | undefined
  /** Called for every event, for logs and metrics. Must not throw. */
  readonly onEvent?: ((event: DeliveryEvent<T>) => void) | undefined
}

/** An event of a message. */
export type DeliveryEvent<T> =
  | { readonly type: 'delivered'; readonly delivery: PendingDelivery<T> }
  /** An attempt failed; the next one follows after `delayMs`. */
  | {
      readonly type: 'retrying'
      readonly delivery: PendingDelivery<T>
      readonly error: unknown
      readonly delayMs: number
    }
  | { readonly type: 'dead'; readonly letter: DeadLetter<T>; readonly error: unknown }
  /** A dead letter was dropped because there were too many. */
  | { readonly type: 'dead-dropped'; readonly letter: DeadLetter<T> }
  /** Saving failed; it is retried with the next change. */
  | { readonly type: 'store-failed'; readonly error: unknown }

/** The result of {@link DeliveryQueue.add}. */
export type AddOutcome =
  /** It will be delivered; if `stored` is false, only if the process lives long enough. */
  | { readonly outcome: 'queued'; readonly idempotencyKey: string; readonly stored: boolean }
  /** A message with this key is already pending or dead; this one was ignored. */
  | { readonly outcome: 'duplicate'; readonly idempotencyKey: string }
  /** The queue is full or closed; the message was ignored. */
  | { readonly outcome: 'full' | 'closed' }

/** Current and past numbers of messages. */
export interface DeliveryCounts {
  /** Undelivered: waiting, in flight, or between two attempts. */
  readonly pending: number
  /** Attempts in flight. */
  readonly inFlight: number
  readonly dead: number
  readonly delivered: number
  /** Messages that became dead letters since the queue was opened. Redelivery does not reduce it. */
  readonly failed: number
  readonly failedTries: number
  /** Messages rejected because the queue was full. */
  readonly refused: number
  /** Dead letters dropped because there were too many. */
  readonly deadDropped: number
}

const DEFAULTS = { maxTries: 8, timeoutMs: 10_000, mostPending: 1000, mostInFlight: 4, mostDead: 1000 }
const LONGEST_REASON = 500

/**
 * Delivers messages at least once, in no particular order, with retries, exponential backoff and jitter. A message that
 * fails too often, or with a permanent error, becomes a dead letter, which can be listed and redelivered.
 *
 * With a store, undelivered messages survive a restart. A message delivered just before a crash may be delivered again,
 * with the same idempotency key. The number of attempts survives too; the backoff starts again.
 */
export class DeliveryQueue<T> {
  readonly #options: DeliveryQueueOptions<T> & typeof DEFAULTS
  readonly #slots: DeliverySlots
  readonly #pending = new Map<string, PendingDelivery<T>>()
  /** Oldest first. */
  readonly #dead = new Map<string, DeadLetter<T>>()
  readonly #runs = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  readonly #counts = { delivered: 0, failed: 0, failedTries: 0, refused: 0, deadDropped: 0 }
  #hasChanges = false
  #saving: Promise<boolean> = Promise.resolve(true)
  #nextSave: Promise<boolean> | undefined

  private constructor(options: DeliveryQueueOptions<T>) {
    this.#options = resolveOptions(options)
    this.#slots = new DeliverySlots(this.#options.mostInFlight)
  }

  /** Opens a queue that continues from its store. Rejects with the store's error if loading fails. */
  static async open<Message>(options: DeliveryQueueOptions<Message>): Promise<DeliveryQueue<Message>> {
    const queue = new DeliveryQueue(options)
    const records = (await options.store?.load()) ?? []
    for (const record of records) queue.#restore(record)
    queue.#dropOldestDead()
    return queue
  }

  /**
   * Adds a message. Resolves once it is saved, or saving failed; it may be delivered before. With an `idempotencyKey`,
   * a message is not added again while the first is pending or dead.
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

  /** Whether a message is undelivered and not a dead letter. */
  isPending(idempotencyKey: string): boolean {
    return this.#pending.has(idempotencyKey)
  }

  /** Dead letters, oldest first. */
  deadLetters(): DeadLetter<T>[] {
    return [...this.#dead.values()]
  }

  /** Delivers a dead letter again, with the attempts of a new message and its old idempotency key. */
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

  /** Current and past numbers of messages. */
  counts(): DeliveryCounts {
    const now = { pending: this.#pending.size, inFlight: this.#slots.taken, dead: this.#dead.size }
    return { ...now, ...this.#counts }
  }

  /** Resolves when nothing is pending: everything is delivered or dead, or the queue is closed. */
  async idle(): Promise<void> {
    while (this.#runs.size > 0) await Promise.all(this.#runs)
  }

  /**
   * Aborts attempts in flight and waits for them, rejects further messages, and saves. Pending messages stay in the
   * store. Idempotent.
   */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.idle()
    await this.#flush()
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
    return this.#changed()
  }

  #begin(idempotencyKey: string): void {
    const run = this.#deliver(idempotencyKey).finally(() => this.#runs.delete(run))
    this.#runs.add(run)
  }

  async #deliver(idempotencyKey: string): Promise<void> {
    const { maxTries, onEvent, random, sleep, baseMs, capMs, shouldRetry, retryAfterMs } = this.#options
    try {
      await retry(() => this.#try(idempotencyKey), {
        ...{ random, sleep, baseMs, capMs, shouldRetry, retryAfterMs },
        // A loaded message has used some of its attempts; one more is made even if it has used all.
        maxRetries: Math.max(0, maxTries - 1 - this.#current(idempotencyKey).tries),
        signal: this.#closing.signal,
        onRetry: ({ error, delayMs }) =>
          onEvent?.({ type: 'retrying', delivery: this.#current(idempotencyKey), error, delayMs }),
      })
    } catch (error) {
      // The receiver's own error is more useful than the fact that attempts are used up.
      const failure = error instanceof RetriesExhausted ? error.lastError : error
      if (!this.#closing.signal.aborted) this.#bury(idempotencyKey, failure)
      return
    }
    const delivery = this.#current(idempotencyKey)
    this.#pending.delete(idempotencyKey)
    this.#counts.delivered++
    void this.#changed()
    onEvent?.({ type: 'delivered', delivery })
  }

  async #try(idempotencyKey: string): Promise<void> {
    const { deliver, timeoutMs, sleep } = this.#options
    const closing = this.#closing.signal
    await this.#slots.take(closing)
    const delivery = this.#current(idempotencyKey)
    const { message, tries } = delivery
    try {
      // An async function turns a synchronous exception into a rejection.
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
      this.#dead.delete(idempotencyKey)
      void this.#changed()
      this.#counts.deadDropped++
      this.#options.onEvent?.({ type: 'dead-dropped', letter })
    }
  }

  /** Saves after a change. Resolves after the save was attempted: true if it succeeded. Never rejects. */
  #changed(): Promise<boolean> {
    if (this.#options.store === undefined) return Promise.resolve(false)
    this.#hasChanges = true
    return this.#flush()
  }

  /** One save at a time: changes during a save go into the next one together. */
  #flush(): Promise<boolean> {
    if (!this.#hasChanges) return this.#saving
    this.#nextSave ??= this.#saving.then(() => {
      this.#nextSave = undefined
      this.#saving = this.#save()
      return this.#saving
    })
    return this.#nextSave
  }

  async #save(): Promise<boolean> {
    const { store, onEvent } = this.#options
    this.#hasChanges = false
    try {
      await store?.save([...this.#dead.values(), ...this.#pending.values()])
      return true
    } catch (error) {
      // The next change, or `close`, tries again.
      this.#hasChanges = true
      onEvent?.({ type: 'store-failed', error })
      return false
    }
  }

  /** The current state of a pending message. */
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

/** Options of {@link runAttempt}. */
interface AttemptLimits {
  readonly timeoutMs: number
  readonly sleep: Sleep
  /** Aborts when the queue is closed. */
  readonly closing: AbortSignal
}

/**
 * Runs one attempt. Rejects with its error; with an error named `TimeoutError` on timeout; with the reason of `closing`
 * if that aborts. In the last two cases immediately, even if the attempt ignores its signal.
 */
async function runAttempt(
  run: (signal: AbortSignal) => Promise<void>,
  { timeoutMs, sleep, closing }: AttemptLimits,
): Promise<void> {
  closing.throwIfAborted()
  const attempt = new AbortController()
  const ended = new AbortController()
  const onClosing = (): void => attempt.abort(closing.reason)
  closing.addEventListener('abort', onClosing, { once: true })
  sleep(timeoutMs, ended.signal).then(
    () => attempt.abort(new DOMException(`No answer in ${timeoutMs} ms`, 'TimeoutError')),
    // The attempt has already ended.
    () => undefined,
  )
  const aborted = new Promise<never>((_, reject) => {
    attempt.signal.addEventListener('abort', () => reject(attempt.signal.reason), { once: true })
  })
  try {
    await Promise.race([run(attempt.signal), aborted])
  } finally {
    closing.removeEventListener('abort', onClosing)
    ended.abort()
  }
}

/** A FIFO semaphore: limits the number of concurrent attempts. */
class DeliverySlots {
  readonly #most: number
  readonly #waiters: (() => void)[] = []
  #taken = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Attempts in flight. */
  get taken(): number {
    return this.#taken
  }

  /** Waits for a free slot. Rejects with the reason of `signal` if that aborts first. */
  take(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason)
    if (this.#taken < this.#most) {
      this.#taken++
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      const onAbort = (): void => {
        this.#waiters.splice(this.#waiters.indexOf(enter), 1)
        reject(signal.reason)
      }
      this.#waiters.push(enter)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** Releases a slot. */
  free(): void {
    const next = this.#waiters.shift()
    // The slot passes directly to the next waiter.
    if (next === undefined) this.#taken--
    else next()
  }
}
