import { createHmac, timingSafeEqual } from 'node:crypto'
import { LONGEST_RESERVATION_ID } from '@sluice/contract'
import type { Limit } from '@sluice/core/store'
import type { Ticket } from './reservation-ticket.ts'

/** A ticket as compact JSON: values that occur in several charges are written once. */
type Written = readonly [
  kind: 0 | 1,
  thread: number,
  failure: 0 | 1 | 2,
  endsAtMs: number | null,
  leaseMs: number,
  cost: number,
  holder: number,
  held: 0 | 1,
  limits: readonly CompactLimit[],
  keys: readonly string[],
  charges: readonly (readonly [limit: number, key: number, at: number, cost: number, mark: number])[],
]

const KINDS = ['units', 'slot'] as const
const FAILURES = [undefined, 'open', 'local'] as const

/** Prefix of every id: its kind and format version. Signed as well. */
const FORM = 'r1'

/** Prefix, content in base64url, and a MAC of both in base64url. */
const ID = /^r1\.([\w-]+)\.([\w-]{43})$/

/**
 * Reservation ids contain everything that settles, releases or renews a reservation. They are signed: any thread of any
 * node with the same secret accepts them, and they cannot be forged. They are not encrypted: the holder of an id can
 * read the counted identities and settle the reservation.
 */
export class ReservationIds {
  readonly #secret: Uint8Array

  /** @param secret - read at each use, because its bytes may change */
  constructor(secret: Uint8Array) {
    this.#secret = secret
  }

  /** The id of a ticket; undefined if it would be too long. */
  write(ticket: Ticket): string | undefined {
    const signed = `${FORM}.${Buffer.from(JSON.stringify(written(ticket))).toString('base64url')}`
    const id = `${signed}.${this.#mac(signed)}`
    return id.length <= LONGEST_RESERVATION_ID ? id : undefined
  }

  /** The ticket in an id; undefined unless it was signed with this secret and is unchanged. */
  read(id: string): Ticket | undefined {
    const [, text, mac] = ID.exec(id) ?? []
    if (text === undefined || mac === undefined) return undefined
    // In constant time, so that the duration reveals nothing about the MAC.
    if (!timingSafeEqual(Buffer.from(mac), Buffer.from(this.#mac(`${FORM}.${text}`)))) return undefined
    return ticketOf(JSON.parse(Buffer.from(text, 'base64url').toString()) as Written)
  }

  #mac(signed: string): string {
    return createHmac('sha256', Buffer.from(this.#secret)).update(signed).digest('base64url')
  }
}

function written({ kind, thread, failure, endsAtMs, leaseMs, claim: { cost, receipt } }: Ticket): Written {
  const limits = new ValueIndex<Ticket['claim']['receipt']['charges'][number]['limit']>()
  const keys = new ValueIndex<string>()
  const charges = receipt.charges.map(({ limit, key, at, cost: units, mark }) => {
    return [limits.numberOf(limit), keys.numberOf(key), at, units, mark] as const
  })
  return [
    KINDS.indexOf(kind) as 0 | 1,
    thread,
    FAILURES.indexOf(failure) as 0 | 1 | 2,
    Number.isFinite(endsAtMs) ? endsAtMs : null,
    leaseMs,
    cost,
    receipt.holder,
    receipt.held ? 1 : 0,
    limits.values.map(compactLimit),
    keys.values,
    charges,
  ]
}

function ticketOf(parts: Written): Ticket {
  const [kind, thread, failure, endsAtMs, leaseMs, cost, holder, held, limits, keys, charges] = parts
  const expanded = limits.map(expandLimit)
  const receipt = {
    holder,
    held: held === 1,
    leaseMicros: 0,
    charges: charges.map(([limit, key, at, units, mark]) => {
      return { limit: expanded[limit]!, key: keys[key]!, at, cost: units, mark }
    }),
  }
  return {
    kind: KINDS[kind],
    thread,
    failure: FAILURES[failure],
    endsAtMs: endsAtMs ?? Number.POSITIVE_INFINITY,
    leaseMs,
    claim: { cost, receipt },
  }
}

/** A value of JSON. */
type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** A limit as a list: its algorithm, then the values of {@link COMMON}, then those of {@link OWN}. */
export type CompactLimit = readonly [algorithm: Limit['algorithm'], ...values: Json[]]

/** Fields of every limit, in the order of the list. Changing the order changes the format of ids. */
const COMMON = [
  'id',
  'rule',
  'limit',
  'capacity',
  'stateSize',
  'fixedSize',
  'space0',
  'space1',
  'failureMode',
] as const satisfies readonly (keyof Limit)[]

/** A field that only limits of one algorithm have. */
type OwnField<A extends Limit['algorithm']> = Exclude<keyof Extract<Limit, { algorithm: A }> & string, keyof Limit>

/** Fields that only limits of one algorithm have. */
const OWN: { readonly [A in Limit['algorithm']]: readonly OwnField<A>[] } = {
  'token-bucket': ['rate', 'full'],
  'token-bucket-rollover': ['rate', 'full', 'rolloverFull'],
  'leaky-bucket-meter': ['rate', 'full'],
  gcra: ['rate', 'full'],
  'leaky-bucket-queue': ['rate', 'full'],
  'fixed-window': ['window', 'rolloverMax'],
  'sliding-window-counter': ['windowMicros'],
  'sliding-window-log': ['windowMicros'],
  'sliding-window-segments': ['windowMicros', 'segments'],
  hybrid: ['base', 'burst'],
  concurrency: ['leaseMicros'],
}

/** Limits within a limit. */
const NESTED: ReadonlySet<string> = new Set(['base', 'burst'])

/** A compact form of a limit for JSON, half as long. */
export function compactLimit(limit: Limit): CompactLimit {
  const values: Readonly<Record<string, unknown>> = { ...limit }
  const fields = fieldsOf(limit.algorithm).map((field) => {
    const value = values[field]
    return NESTED.has(field) ? compactLimit(value as Limit) : ((value ?? null) as Json)
  })
  return [limit.algorithm, ...fields]
}

/** The limit of a compact form. */
export function expandLimit([algorithm, ...values]: CompactLimit): Limit {
  const limit: Record<string, unknown> = { algorithm }
  for (const [index, field] of fieldsOf(algorithm).entries()) {
    const value = values[index]
    limit[field] = NESTED.has(field) ? expandLimit(value as CompactLimit) : (value ?? undefined)
  }
  return limit as unknown as Limit
}

function fieldsOf(algorithm: Limit['algorithm']): readonly string[] {
  return [...COMMON, ...OWN[algorithm]]
}

/** Numbers values in the order of their first occurrence. */
class ValueIndex<T> {
  readonly #numbers = new Map<T, number>()

  /** The number of a value, from 0; equal values have the same number. */
  numberOf(value: T): number {
    const known = this.#numbers.get(value)
    if (known !== undefined) return known
    const number = this.#numbers.size
    this.#numbers.set(value, number)
    return number
  }

  /** Each value once, at the index of its number. */
  get values(): readonly T[] {
    return [...this.#numbers.keys()]
  }
}
