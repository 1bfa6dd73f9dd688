import { SluiceError } from '../../errors.ts'

// One buffer, in 64-bit words:
//
//   header       sizes, the secret of the fingerprints, shared counters
//   descriptors  one for each thread: the transaction it is committing
//   buckets      16 words each: word 0 is the bucket's own, words 1 to 15 are slots
//   records      what slots point to: fingerprint, expiry, use, state
//
// A slot is a version (low half) and a payload (high half): 0 is empty, above 0 names a record, below 0 a transaction
// in progress. Records are written before other threads can see them and never after: a change swaps the slot to
// another record.

/** 32-bit halves of the header. */
export const HEADER = {
  magic: 0,
  maxKeys: 1,
  maxStateSize: 2,
  maxThreads: 3,
  secretLow: 4,
  secretHigh: 5,
  /** Records handed out so far; the rest has never been used. */
  nextRecord: 6,
  /** The last second at which any block is active. After it, threads skip the lookup. */
  blockedUntilSeconds: 7,
  /** The bucket at which the next search for expired records begins. */
  hand: 8,
  evictions: 9,
  overflowed: 10,
  /** Records handed out so far to overflow counters, which have a supply of their own. */
  nextOverflowRecord: 11,
  /** A word: the first of the records that no thread has, each of which names the next. */
  freeRecords: 12,
  /** First of the words that say which thread numbers are taken. */
  threads: 16,
} as const

const MAGIC = 0x51_1c_e0_01
const HEADER_HALVES = 64

/** Most limits in one decision. */
export const MOST_ITEMS = 32

/** Entries of one transaction: each of its limits with its slot and its bucket. */
export const MOST_ENTRIES: number = 2 * MOST_ITEMS
export const ENTRY_HALVES = 4

/** Status, count, and the entries. */
export const DESCRIPTOR_HALVES: number = 2 + MOST_ENTRIES * ENTRY_HALVES

export const BUCKET_WORDS = 16

/** Buckets kept for the overflow counters of limits. */
export const OVERFLOW_BUCKETS = 16

/** Fingerprint (3), expiry, length of the state, spare. */
export const RECORD_HEADER_HALVES = 6

/** Records every thread may need at once beyond those in the table. */
export const RECORDS_PER_THREAD = 64

/** Payloads have 24 bits for the number of a record. */
const MOST_RECORDS = 0x00ff_ffff

/** Keys for which a bucket of 15 slots is laid out: a fuller one than 15 is then a matter of 1 in 10,000. */
const KEYS_PER_BUCKET = 5

/** Sizes that a table is made with. */
export interface SharedSizes {
  readonly maxKeys: number
  readonly maxStateSize: number
  readonly maxThreads: number
}

/** Where everything stands, in 32-bit halves from the start of the buffer. */
export interface SharedLayout extends SharedSizes {
  readonly descriptorsAt: number
  readonly bucketsAt: number
  /** Number of ordinary buckets, a power of two; the overflow buckets follow them. */
  readonly buckets: number
  readonly recordsAt: number
  /** Where the supply of overflow counters begins; records before it are for keys. */
  readonly overflowRecordsFrom: number
  /** Where the records set aside for the threads begin. */
  readonly threadRecordsFrom: number
  readonly recordHalves: number
  readonly totalHalves: number
}

/** The layout for given sizes. */
export function layoutFor({ maxKeys, maxStateSize, maxThreads }: SharedSizes): SharedLayout {
  const buckets = 2 ** Math.ceil(Math.log2(Math.max(1, maxKeys / KEYS_PER_BUCKET)))
  // Threads that are about to store the same new keys each hold records for them, which must not cost another key its
  // own.
  const overflowRecordsFrom = maxKeys + maxThreads * MOST_ITEMS
  const threadRecordsFrom = overflowRecordsFrom + OVERFLOW_BUCKETS * BUCKET_WORDS
  const allRecords = threadRecordsFrom + maxThreads * RECORDS_PER_THREAD
  if (allRecords > MOST_RECORDS) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'the shared memory store would be too large',
      received: maxKeys,
      expected: `at most ${MOST_RECORDS} keys and spare records in all`,
    })
  }
  const recordHalves = RECORD_HEADER_HALVES + 2 * maxStateSize
  const descriptorsAt = HEADER_HALVES
  const bucketsAt = descriptorsAt + maxThreads * DESCRIPTOR_HALVES
  const recordsAt = bucketsAt + (buckets + OVERFLOW_BUCKETS) * BUCKET_WORDS * 2
  const totalHalves = recordsAt + allRecords * recordHalves
  return {
    maxKeys,
    maxStateSize,
    maxThreads,
    descriptorsAt,
    bucketsAt,
    buckets,
    recordsAt,
    overflowRecordsFrom,
    threadRecordsFrom,
    recordHalves,
    totalHalves,
  }
}

/** Marks a fresh buffer with its sizes. */
export function writeHeader(halves: Int32Array, sizes: SharedSizes): void {
  halves[HEADER.maxKeys] = sizes.maxKeys
  halves[HEADER.maxStateSize] = sizes.maxStateSize
  halves[HEADER.maxThreads] = sizes.maxThreads
  Atomics.store(halves, HEADER.magic, MAGIC)
}

/** The sizes a buffer was made with. Throws when it is not such a buffer. */
export function readHeader(halves: Int32Array): SharedSizes {
  if (halves.length < HEADER_HALVES || Atomics.load(halves, HEADER.magic) !== MAGIC) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'the handle is not that of a shared memory store of this version',
      expected: 'what store.handle() returned, passed on as workerData',
    })
  }
  return {
    maxKeys: halves[HEADER.maxKeys]!,
    maxStateSize: halves[HEADER.maxStateSize]!,
    maxThreads: halves[HEADER.maxThreads]!,
  }
}
