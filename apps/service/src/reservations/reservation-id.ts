import { createHmac, timingSafeEqual } from 'node:crypto'
import { LONGEST_RESERVATION_ID } from '@sluice/contract'
import type { CompactLimit } from './compact-limit.ts'
import { compactLimit, expandLimit } from './compact-limit.ts'
import type { Ticket } from './ticket.ts'
import { Numbered } from './value-index.ts'

/** A ticket as JSON: what appears in several charges is written once. */
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

/** Begins every id, and is signed with it: what it is, and the form of what follows. */
const FORM = 'r1'

/** The form, what it says in base64url, and a MAC of both in base64url. */
const ID = /^r1\.([\w-]+)\.([\w-]{43})$/

/**
 * Reservation ids: all that is needed to settle, release or renew a reservation, signed, so that any thread of any node with
 * the same secret can do it and nobody can make one up. An id is not encrypted: whoever has it can read the identities that
 * were counted, and can settle what it names.
 */
export class ReservationIds {
  readonly #secret: Uint8Array

  /** @param secret - read at each use: its bytes may change */
  constructor(secret: Uint8Array) {
    this.#secret = secret
  }

  /** The id that says `ticket`; undefined when it would be longer than an id may be. */
  write(ticket: Ticket): string | undefined {
    const signed = `${FORM}.${Buffer.from(JSON.stringify(written(ticket))).toString('base64url')}`
    const id = `${signed}.${this.#mac(signed)}`
    return id.length <= LONGEST_RESERVATION_ID ? id : undefined
  }

  /** What `id` says; undefined unless it is, whole and unchanged, one that was written with this secret. */
  read(id: string): Ticket | undefined {
    const [, text, mac] = ID.exec(id) ?? []
    if (text === undefined || mac === undefined) return undefined
    // In constant time: how long a comparison takes would tell a forger how far the guess was right.
    if (!timingSafeEqual(Buffer.from(mac), Buffer.from(this.#mac(`${FORM}.${text}`)))) return undefined
    return ticketOf(JSON.parse(Buffer.from(text, 'base64url').toString()) as Written)
  }

  #mac(signed: string): string {
    return createHmac('sha256', Buffer.from(this.#secret)).update(signed).digest('base64url')
  }
}

function written({ kind, thread, failure, endsAtMs, leaseMs, claim: { cost, receipt } }: Ticket): Written {
  const limits = new Numbered<Ticket['claim']['receipt']['charges'][number]['limit']>()
  const keys = new Numbered<string>()
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
