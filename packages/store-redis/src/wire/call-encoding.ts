import { hash } from 'node:crypto'
import type { CalendarPeriod } from '@sluice/core/internal'
import { calendarWindow } from '@sluice/core/internal'
import type { Limit } from '@sluice/core/store'

/** The time arguments of a script. */
export interface CallTime {
  /** Microseconds since 1970 to use instead of the server's time; 0 for the server's. */
  readonly givenMicros: number
  /** The approximate time, for the calendar. */
  readonly aboutMicros: number
  /** Milliseconds to add to the expiry of keys. */
  readonly slackMs: number
}

/** What encoding a call requires. */
export interface CallContext {
  readonly writer: ByteWriter
  /** A second writer, for parts that are written first and come last. */
  readonly body: ByteWriter
  readonly time: CallTime
  /** The Redis key of the record of a key. */
  readonly recordOf: (key: string) => string
}

/** The keys and arguments of one call of a script. */
export interface ScriptCall {
  readonly keys: readonly string[]
  readonly args: readonly Buffer[]
}

/** Collects the keys and limits of a call, each once, and assigns their indexes, starting from 1. */
export class CallArguments {
  readonly #records: string[] = []
  readonly #keyIndexes = new Map<string, number>()
  readonly #holds: string[] = []
  readonly #limits = new Map<Limit, number>()
  readonly #limitBytes: Buffer[] = []
  readonly #time: CallTime

  constructor(time: CallTime) {
    this.#time = time
  }

  get isEmpty(): boolean {
    return this.#records.length === 0
  }

  keyIndex(name: string): number {
    let index = this.#keyIndexes.get(name)
    if (index === undefined) {
      index = this.#records.push(name)
      this.#keyIndexes.set(name, index)
    }
    return index
  }

  limitIndex(limit: Limit): number {
    let index = this.#limits.get(limit)
    if (index === undefined) {
      index = this.addLimit(encodingOf(limit).bytes(this.#time.aboutMicros))
      this.#limits.set(limit, index)
    }
    return index
  }

  /** Adds an encoded limit, without checking whether it is there. */
  addLimit(bytes: Buffer): number {
    return this.#limitBytes.push(bytes)
  }

  /** The index of the key of a long state, or 0 when the limit has none. */
  longStateIndex(record: string, tag: string | undefined): number {
    return tag === undefined ? 0 : this.keyIndex(longStateKey(record, tag))
  }

  /** Adds a key that is known not to be there. */
  addKey(name: string): number {
    return this.#records.push(name)
  }

  /** The offset of a record's hold keys among those of the call. Their index is known when all other keys are. */
  holdOffset(record: string): number {
    const name = holdSetKey(record)
    const offset = this.#holds.indexOf(name)
    return offset >= 0 ? offset : this.#holds.push(name, holdNotesKey(record)) - 2
  }

  holdIndex(offset: number): number {
    return this.#records.length + 1 + offset
  }

  get keys(): readonly string[] {
    return this.#holds.length === 0 ? this.#records : [...this.#records, ...this.#holds]
  }

  /** The first argument: the call header, the limits, and the contents of `body`. */
  header(writer: ByteWriter, body?: ByteWriter): Buffer {
    writer.clear()
    writer.double(this.#time.givenMicros)
    writer.double(this.#time.slackMs)
    writer.uint16(this.#records.length)
    writer.uint16(this.#limitBytes.length)
    for (const bytes of this.#limitBytes) writer.bytes(bytes)
    if (body !== undefined) writer.append(body)
    return writer.take()
  }
}

const FIRST_SIZE = 4096

/** Writes little-endian numbers into a growing buffer. Reused for many messages. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(FIRST_SIZE)
  #length = 0

  get length(): number {
    return this.#length
  }

  clear(): void {
    this.#length = 0
  }

  uint8(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value
  }

  uint16(value: number): void {
    this.#reserve(2)
    const at = this.#length
    this.#bytes[at] = value & 0xff
    this.#bytes[at + 1] = value >>> 8
    this.#length = at + 2
  }

  double(value: number): void {
    this.#reserve(8)
    this.#bytes.writeDoubleLE(value, this.#length)
    this.#length += 8
  }

  bytes(value: Buffer): void {
    this.#reserve(value.length)
    value.copy(this.#bytes, this.#length)
    this.#length += value.length
  }

  /** Appends the contents of another writer. */
  append(other: ByteWriter): void {
    this.#reserve(other.#length)
    other.#bytes.copy(this.#bytes, this.#length, 0, other.#length)
    this.#length += other.#length
  }

  /** Overwrites two bytes that were written before. */
  patchUint16(at: number, value: number): void {
    this.#bytes.writeUInt16LE(value, at)
  }

  /** A copy of the message. */
  take(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length))
  }

  #reserve(size: number): void {
    if (this.#length + size <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + size))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

/** Keys that are used unchanged: none of these characters ends a hash tag or looks like the mark of a digest. */
const READABLE = /^[A-Za-z0-9_.:@/+-]{1,64}$/

/** Version of the storage format, part of every key. */
const FORMAT = 1

/**
 * Maps the keys of callers to Redis keys. Short keys of common characters stay readable (`sluice:1:{=user-7}`). Any
 * other is replaced by the SHA-256 of its UTF-16 (`sluice:1:{#...}`): Redis keys are short and unique, and no character
 * can move a key to another slot. All Redis keys of one key share a hash tag, so in a cluster they are in one slot.
 */
export class RedisKeys {
  readonly #readable: string
  readonly #hashed: string

  /** The pattern that matches all records, and none of longer prefixes. */
  readonly pattern: string

  constructor(prefix: string) {
    this.pattern = `${prefix}:${FORMAT}:{*`
    this.#readable = `${prefix}:${FORMAT}:{=`
    this.#hashed = `${prefix}:${FORMAT}:{#`
  }

  /** The Redis key of the record, which holds all small states of a key. */
  record(key: string): string {
    return READABLE.test(key)
      ? `${this.#readable}${key}}`
      : `${this.#hashed}${hash('sha256', Buffer.from(key, 'utf16le'), 'base64url')}}`
  }
}

/** Whether a Redis key is that of a record. */
export function isRecordKey(name: string): boolean {
  return name.endsWith('}')
}

/** The Redis key of a long state, which is stored outside of the record. */
export function longStateKey(record: string, tag: string): string {
  return `${record}:${tag}`
}

/** The sorted set of the reservations of a key, by expiry. */
export function holdSetKey(record: string): string {
  return `${record}:h`
}

/** The hash of the charges of each reservation of a key. */
export function holdNotesKey(record: string): string {
  return `${record}:n`
}

/** The numbers of algorithms in scripts; see lua/includes/limits.lua. */
const KINDS: { readonly [A in Limit['algorithm']]: number } = {
  'token-bucket': 1,
  'leaky-bucket-meter': 1,
  gcra: 1,
  'leaky-bucket-queue': 2,
  'fixed-window': 3,
  'sliding-window-counter': 4,
  'sliding-window-log': 5,
  'sliding-window-segments': 6,
  hybrid: 7,
  concurrency: 8,
  'token-bucket-rollover': 9,
}

const BUCKET = 1
const HYBRID = 7
const LOG = 5
const SLOTS = 8

/** Calendar periods sent along, before and after the current one: enough for rollover and for clock differences. */
const PERIODS_BEFORE = 3
const PERIODS_AFTER = 3

const TAG_BYTES = 8

/** A limit as the scripts read it, and what is needed to decode their replies. Created once per limit. */
export interface LimitEncoding {
  /** The end of the Redis key of its states. Undefined when they are part of the record. */
  readonly longTag: string | undefined
  /** Whether the script replies with remaining, reset and retry, because the state may be long. */
  readonly isDecidedByScript: boolean
  /** Number of values of the state in the record. */
  readonly recordSize: number
  /** Whether a list of values follows. */
  readonly hasList: boolean
  /** What a call with a single check by this limit has instead of `bytes`; undefined unless it is a bucket. */
  readonly singleBucket: Buffer | undefined
  /** The encoded limit. `nowMicros` matters for calendar windows only: the periods around it are sent along. */
  bytes(nowMicros: number): Buffer
}

const encodings = new WeakMap<Limit, LimitEncoding>()

export function encodingOf(limit: Limit): LimitEncoding {
  let encoding = encodings.get(limit)
  if (encoding === undefined) {
    encoding = createEncoding(limit)
    encodings.set(limit, encoding)
  }
  return encoding
}

/** The 8 bytes that identify an entry of a record. */
export function entryTag(what: 'state' | 'block' | 'lease', name: string): Buffer {
  return hash('sha256', `${what}:${name}`, 'buffer').subarray(0, TAG_BYTES)
}

/** The {@link LimitEncoding.longTag} of an encoded limit, as stored with a reservation. */
export function longTagIn(bytes: Buffer): string | undefined {
  const base = bytes.readDoubleLE(1 + 3 * TAG_BYTES + 7 * 8)
  const isLong = isLongKind(bytes[0]!) || (bytes[0] === HYBRID && isLongKind(base))
  return isLong ? bytes.toString('hex', 1, 1 + TAG_BYTES) : undefined
}

function isLongKind(kind: number): boolean {
  return kind === LOG || kind === KINDS['sliding-window-segments'] || kind === SLOTS
}

function createEncoding(limit: Limit): LimitEncoding {
  const kind = KINDS[limit.algorithm]
  const tag = entryTag('state', limit.id)
  const base = limit.algorithm === 'hybrid' ? limit.base : limit
  const isLong = isLongKind(kind) || isLongKind(KINDS[base.algorithm])
  const calendar = base.algorithm === 'fixed-window' && typeof base.window !== 'number' ? base.window : undefined
  const fixed = bytesOf(limit, { kind, tag, edges: [] })
  const onCalendar = calendar === undefined ? undefined : new CalendarEncoding(limit, { kind, tag, calendar })
  return {
    longTag: isLong ? tag.toString('hex') : undefined,
    isDecidedByScript: kind === LOG || kind === SLOTS,
    recordSize: recordSizeOf(limit, isLong),
    hasList: isLong,
    singleBucket: kind === BUCKET ? singleBucketOf(fixed) : undefined,
    bytes: (nowMicros) => (onCalendar === undefined ? fixed : onCalendar.at(nowMicros)),
  }
}

/** The burst of a hybrid is part of the record even when its window is long. */
function recordSizeOf(limit: Limit, isLong: boolean): number {
  if (!isLong) return limit.stateSize
  return limit.algorithm === 'hybrid' ? 2 : 0
}

interface EncodingParts {
  readonly kind: number
  readonly tag: Buffer
}

/** Encodes a limit on a calendar again whenever a new period starts. */
class CalendarEncoding {
  readonly #limit: Limit
  readonly #parts: EncodingParts & { readonly calendar: CalendarPeriod }
  #from = 0
  #to = 0
  #bytes: Buffer = Buffer.alloc(0)

  constructor(limit: Limit, parts: EncodingParts & { readonly calendar: CalendarPeriod }) {
    this.#limit = limit
    this.#parts = parts
  }

  at(nowMicros: number): Buffer {
    if (nowMicros >= this.#from && nowMicros < this.#to) return this.#bytes
    const { calendar } = this.#parts
    let { startAt, endAt } = calendarWindow(calendar, nowMicros)
    this.#from = startAt
    this.#to = endAt
    const edges = [startAt, endAt]
    for (let period = 0; period < PERIODS_AFTER; period++) {
      endAt = calendarWindow(calendar, endAt).endAt
      edges.push(endAt)
    }
    for (let period = 0; period < PERIODS_BEFORE; period++) {
      startAt = calendarWindow(calendar, startAt - 1).startAt
      edges.unshift(startAt)
    }
    this.#bytes = bytesOf(this.#limit, { ...this.#parts, edges })
    return this.#bytes
  }
}

/** See lua/includes/limits.lua for the order. */
function bytesOf(limit: Limit, { kind, tag, edges }: EncodingParts & { readonly edges: readonly number[] }): Buffer {
  const base = limit.algorithm === 'hybrid' ? limit.base : limit
  const burst = limit.algorithm === 'hybrid' ? limit.burst : undefined
  const rate = burst?.rate ?? ('rate' in limit ? limit.rate : { units: 0, micros: 1 })
  const numbers = [
    limit.capacity,
    'full' in base ? base.full : base.limit,
    windowOf(base),
    extraOf(base),
    burst?.full ?? 0,
    rate.units,
    rate.micros,
    burst === undefined ? 0 : KINDS[base.algorithm],
    base.capacity,
  ]
  const values = Buffer.alloc(8 * (numbers.length + edges.length) + 1)
  for (const [index, number] of numbers.entries()) values.writeDoubleLE(number, 8 * index)
  values.writeUInt8(edges.length, 8 * numbers.length)
  for (const [index, edge] of edges.entries()) values.writeDoubleLE(edge, 8 * (numbers.length + index) + 1)
  return Buffer.concat([Buffer.of(kind), tag, entryTag('block', limit.rule), entryTag('lease', limit.id), values])
}

/** The start and the end of the header of a record with one bucket, around its tag. */
const HEADER_START = Buffer.of(2, 1, 0)
const HEADER_END = Buffer.of(2, 0)

/** The parts of an encoded bucket in the order of lua/includes/single-bucket-check.lua. */
function singleBucketOf(bytes: Buffer): Buffer {
  const [tag, others, capacity] = [bytes.subarray(1, 9), bytes.subarray(9, 25), bytes.subarray(25, 33)]
  const [full, rate] = [bytes.subarray(33, 41), bytes.subarray(65, 81)]
  return Buffer.concat([HEADER_START, tag, HEADER_END, full, rate, others, capacity])
}

function windowOf(limit: Limit): number {
  if ('windowMicros' in limit) return limit.windowMicros
  if ('leaseMicros' in limit) return limit.leaseMicros
  return 'window' in limit && typeof limit.window === 'number' ? limit.window : 0
}

function extraOf(limit: Limit): number {
  if ('segments' in limit) return limit.segments
  if ('rolloverFull' in limit) return limit.rolloverFull
  return 'rolloverMax' in limit ? limit.rolloverMax : 0
}
