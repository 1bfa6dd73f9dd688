import { DESCRIPTOR_HALVES, ENTRY_HALVES, MOST_ENTRIES, type SharedLayout } from './layout.ts'
import type { SharedWords } from './shared-words.ts'

// Several words change together or not at all, without a lock. A thread that commits
//
//   1. writes into its descriptor which words it wants to change, from what and to what: UNDECIDED;
//   2. swaps each of these words to a reference to the descriptor, in ascending order;
//   3. swaps the descriptor from UNDECIDED to COMMITTED: from this instant on all words have changed;
//   4. swaps every word from the reference to its new value.
//
// A thread that meets a reference waits a moment, then decides for its owner: an UNDECIDED descriptor becomes ABORTED,
// and the word goes to its new value (COMMITTED) or back to the old (ABORTED). So a thread that dies anywhere in
// between blocks no other, and its transaction has happened completely or not at all. A live thread that was aborted
// sees it in step 3 and tries again.
//
// The reference carries the descriptor's sequence number, and the owner starts a new sequence only after step 4 is
// through for all of its words. So a word that still refers to a sequence proves that the descriptor's entries are
// those of it.

const UNDECIDED = 1
const COMMITTED = 2
const ABORTED = 3
const STATUS_BITS = 2

const REFERENCE = 0x8000_0000 | 0
const SEQUENCE_BITS = 21
const SEQUENCE_MASK = 2 ** SEQUENCE_BITS - 1

/** How often a word is looked at again before its transaction is aborted. Committing takes far less. */
const PATIENCE = 2_000

/**
 * Where a thread may stop for ever: decided and about to commit, with the first word taken, with all words taken,
 * committed with no word finished yet.
 */
export type CommitStep = 'decided' | 'first-word' | 'all-words' | 'committed'

/** One word of a transaction. */
export interface Entry {
  /** Index of the word, in 32-bit halves. */
  half: number
  version: number
  /** Payload expected now. */
  from: number
  /** Payload wanted. */
  to: number
}

/** True when a payload refers to a transaction in progress. */
export function isReference(payload: number): boolean {
  return payload < 0
}

/** What the transactions of a thread work with. */
export interface TransactionParts {
  readonly layout: SharedLayout
  readonly thread: number
  /** Called at each step, for tests that stop a thread there. */
  readonly onStep?: ((step: CommitStep) => void) | undefined
}

/** The transactions of one thread, and its part in finishing those of others. */
export class Transactions {
  readonly #words: SharedWords
  readonly #halves: Int32Array
  readonly #layout: SharedLayout
  readonly #thread: number
  readonly #descriptor: number
  readonly #onStep: ((step: CommitStep) => void) | undefined
  #sequence: number

  constructor(words: SharedWords, halves: Int32Array, { layout, thread, onStep }: TransactionParts) {
    this.#words = words
    this.#halves = halves
    this.#layout = layout
    this.#thread = thread
    this.#onStep = onStep
    this.#descriptor = this.#descriptorOf(thread)
    this.#sequence = Atomics.load(halves, this.#descriptor) >>> STATUS_BITS
  }

  /**
   * Changes all entries' words, or none. False when one of them was no longer as expected, or when another thread lost
   * patience. `entries` are sorted here, because threads that go in one order cannot wait for each other in a circle.
   */
  commit(entries: readonly Entry[]): boolean {
    const count = entries.length
    const [first] = entries
    if (first !== undefined && count === 1)
      return this.#words.advance(first.half, { version: first.version, payload: first.from }, first.to)
    const sorted = entries.toSorted((a, b) => a.half - b.half)
    const status = this.#open(sorted)
    const reference = REFERENCE | (this.#thread << SEQUENCE_BITS) | this.#sequence
    let installed = 0
    while (installed < count && this.#install(sorted[installed]!, reference)) {
      installed++
      if (installed === 1) this.#onStep?.('first-word')
    }
    if (installed === count) this.#onStep?.('all-words')
    const decision = installed === count ? COMMITTED : ABORTED
    const undecided = (this.#sequence << STATUS_BITS) | UNDECIDED
    const committed =
      Atomics.compareExchange(this.#halves, status, undecided, (this.#sequence << STATUS_BITS) | decision) ===
        undecided && decision === COMMITTED
    if (committed) this.#onStep?.('committed')
    for (let index = 0; index < installed; index++) this.#finish(sorted[index]!, reference, committed)
    return committed
  }

  /** Finishes the transaction that the word at `half` refers to, as far as that word goes. */
  resolve(half: number, version: number, reference: number): void {
    for (let look = 0; look < PATIENCE; look++) {
      if (!this.#words.isStill(half, version, reference)) return
    }
    const sequence = reference & SEQUENCE_MASK
    const descriptor = this.#descriptorOf((reference & ~REFERENCE) >>> SEQUENCE_BITS)
    const undecided = (sequence << STATUS_BITS) | UNDECIDED
    Atomics.compareExchange(this.#halves, descriptor, undecided, (sequence << STATUS_BITS) | ABORTED)
    const status = Atomics.load(this.#halves, descriptor)
    if (status >>> STATUS_BITS !== sequence) return
    const entry = this.#findEntry(descriptor, half)
    if (entry !== undefined) this.#finish({ ...entry, version }, reference, (status & 3) === COMMITTED)
  }

  #descriptorOf(thread: number): number {
    return this.#layout.descriptorsAt + thread * DESCRIPTOR_HALVES
  }

  /** Writes the entries under a new sequence number. Returns where the status stands. */
  #open(entries: readonly Entry[]): number {
    this.#sequence = (this.#sequence + 1) & SEQUENCE_MASK
    const at = this.#descriptor
    Atomics.store(this.#halves, at + 1, entries.length)
    for (const [index, entry] of entries.entries()) {
      const place = at + 2 + index * ENTRY_HALVES
      Atomics.store(this.#halves, place, entry.half)
      Atomics.store(this.#halves, place + 1, entry.from)
      Atomics.store(this.#halves, place + 2, entry.to)
    }
    Atomics.store(this.#halves, at, (this.#sequence << STATUS_BITS) | UNDECIDED)
    return at
  }

  #install({ half, version, from }: Entry, reference: number): boolean {
    return this.#words.replace(half, { version, payload: from }, reference)
  }

  /** Removes the reference from a word, unless another thread has done so. */
  #finish({ half, version, from, to }: Entry, reference: number, committed: boolean): void {
    this.#words.advance(half, { version, payload: reference }, committed ? to : from)
  }

  #findEntry(descriptor: number, half: number): Entry | undefined {
    const count = Math.min(MOST_ENTRIES, Atomics.load(this.#halves, descriptor + 1))
    for (let index = 0; index < count; index++) {
      const place = descriptor + 2 + index * ENTRY_HALVES
      if (Atomics.load(this.#halves, place) !== half) continue
      return {
        half,
        version: 0,
        from: Atomics.load(this.#halves, place + 1),
        to: Atomics.load(this.#halves, place + 2),
      }
    }
    return undefined
  }
}
