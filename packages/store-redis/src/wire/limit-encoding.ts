import { hash } from 'node:crypto'
import type { CalendarPeriod } from '@sluice/core/internal'
import { calendarWindow } from '@sluice/core/internal'
import type { Limit } from '@sluice/core/store'

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
