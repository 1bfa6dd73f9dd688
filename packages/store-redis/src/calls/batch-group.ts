import type { AnswerListener, AskedQuestion } from '@sluice/core/internal'
import type { Batch } from '@sluice/core/store'
import { encodingOf } from '../wire/limit-encoding.ts'
import type { BulkLimits } from './bulk-limits.ts'
import { bulkLimitsOf } from './bulk-limits.ts'

/** A batch that waits for its reply, and the listener to call with it. */
export class PendingBatch implements AskedQuestion {
  sheet: Batch
  readonly listener: AnswerListener
  /** The next one of its group. */
  next: PendingBatch | undefined = undefined
  hasLeft = false
  readonly #original: Batch

  constructor(batch: Batch, listener: AnswerListener) {
    this.sheet = batch
    this.listener = listener
    this.#original = batch
  }

  /** Whether the caller no longer waits for the reply. */
  get isAbandoned(): boolean {
    return this.sheet !== this.#original
  }
}

/**
 * Batches with the same limits, keys and costs, sent once with their number: the script replies how many it admits.
 * Each batch gets the decision it would have got alone.
 *
 * A linked list and not an array: V8 would allocate an array literal per batch in the old generation, because all
 * in-flight ones survive the first collections. From there they keep short-lived objects alive, and collections take 20
 * times as long.
 */
export class BatchGroup {
  head: PendingBatch
  #tail: PendingBatch
  size = 1
  /** The limits, when a bulk check supports them; undefined when the group must be sent as a general batch. */
  readonly bulkLimits: BulkLimits | undefined
  /** Whether nothing in it belongs to a single caller, so that it can stand for several batches. */
  readonly isShareable: boolean
  /** Its position in the call: the index of a bulk check, or infinity among the general batches. */
  position = 0
  /** How often the script has replied that it cannot decide yet. */
  attempts = 0

  constructor(pending: PendingBatch) {
    this.head = pending
    this.#tail = pending
    this.bulkLimits = isSimple(pending.sheet) ? bulkLimitsOf(pending.sheet) : undefined
    this.isShareable = this.bulkLimits !== undefined || isShareable(pending.sheet)
  }

  /** The first batch. All others are equal to it. */
  get first(): Batch {
    return this.head.sheet
  }

  /** Adds an equal batch. Returns false when it is not equal, or when it must be sent on its own. */
  join(pending: PendingBatch): boolean {
    if (!this.isShareable || this.size >= MAX_SIZE || !isEqual(this.first, pending.sheet)) return false
    this.#tail.next = pending
    this.#tail = pending
    this.size++
    return true
  }

  get hasAbandoned(): boolean {
    for (let pending: PendingBatch | undefined = this.head; pending !== undefined; pending = pending.next) {
      if (pending.isAbandoned) return true
    }
    return false
  }

  markSent(): void {
    for (let pending: PendingBatch | undefined = this.head; pending !== undefined; pending = pending.next) {
      pending.hasLeft = true
    }
  }

  /** Removes the abandoned batches. Returns whether any is left. */
  dropAbandoned(): boolean {
    const wanted: PendingBatch[] = []
    for (let pending: PendingBatch | undefined = this.head; pending !== undefined; pending = pending.next) {
      if (!pending.isAbandoned) wanted.push(pending)
    }
    this.size = wanted.length
    for (const [index, pending] of wanted.entries()) pending.next = wanted[index + 1]
    this.head = wanted[0] ?? this.head
    this.#tail = wanted.at(-1) ?? this.#tail
    return wanted.length > 0
  }

  /** Notifies all listeners that their batch is decided. */
  resolve(): void {
    for (let pending: PendingBatch | undefined = this.head; pending !== undefined; ) {
      const { listener, sheet, next }: PendingBatch = pending
      pending.next = undefined
      try {
        listener.answered(sheet)
      } catch (error) {
        // It must not cost the other listeners their decisions.
        listener.unanswered(error)
      }
      pending = next
    }
  }

  /** Notifies all listeners that there is no decision. */
  reject(error: unknown): void {
    for (let pending: PendingBatch | undefined = this.head; pending !== undefined; ) {
      const { listener, next }: PendingBatch = pending
      pending.next = undefined
      listener.unanswered(error)
      pending = next
    }
  }
}

/** A 16-bit count, whose last value means "not decided". */
const MAX_SIZE = 65_534

/** Whether a batch has no holder, reservation or lease, and must be admitted in full. */
function isSimple(batch: Batch): boolean {
  return !(batch.partial || batch.holder !== 0 || batch.holdMicros > 0 || batch.leaseMicros > 0)
}

function isShareable(batch: Batch): boolean {
  return isSimple(batch) && batch.items.every((item) => !encodingOf(item.limit).hasList)
}

function isEqual(one: Batch, other: Batch): boolean {
  if (other.charge !== one.charge || other.entitled !== one.entitled || other.items.length !== one.items.length)
    return false
  if (!isSimple(other)) return false
  for (let index = 0; index < one.items.length; index++) {
    const a = one.items[index]!
    const b = other.items[index]!
    if (a.limit !== b.limit || a.cost !== b.cost || a.key !== b.key) return false
  }
  return true
}
