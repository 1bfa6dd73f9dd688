import type { Settlement } from '@sluice/core'
import type { Receipt } from '@sluice/core/store'
import type { CallContext, ScriptCall } from '../wire/call-encoding.ts'
import { CallArguments, encodingOf, longTagIn } from '../wire/call-encoding.ts'

/** Flags of a settlement; see lua/settle.lua. */
const HELD = 1
const LEASED = 2
const EXPIRED = 4
const STRIKE_ONLY = 8

/** Encodes the settlement of a receipt. With `strikeOnly` a held charge becomes final, if it is still held. */
export function encodeSettleCall(
  receipt: Receipt,
  { actuals, strikeOnly }: { readonly actuals: readonly number[]; readonly strikeOnly: boolean },
  { writer, body, time, recordOf }: CallContext,
): ScriptCall {
  const args = new CallArguments(time)
  const patches: { readonly at: number; readonly offset: number }[] = []
  let flags = strikeOnly ? STRIKE_ONLY : 0
  if (receipt.held) flags += HELD
  if (receipt.leaseMicros > 0) flags += LEASED
  body.clear()
  body.uint8(flags)
  body.uint16(receipt.charges.length)
  body.double(receipt.holder)
  body.double(receipt.leaseMicros)
  for (const [index, { limit, key, at, cost, mark }] of receipt.charges.entries()) {
    const record = recordOf(key)
    body.uint16(args.limitIndex(limit))
    body.uint16(args.keyIndex(record))
    body.uint16(args.longStateIndex(record, encodingOf(limit).longTag))
    if (receipt.held) patches.push({ at: body.length, offset: args.holdOffset(record) })
    body.uint16(0)
    for (const value of [at, cost, mark, actuals[index]!]) body.double(value)
  }
  for (const { at, offset } of patches) body.patchUint16(at, args.holdIndex(offset))
  const settlements = body.take()
  return { keys: args.keys, args: [args.header(writer), settlements] }
}

/** A reservation of a key as stored in Redis: its holder, and its charges, if they are still known. */
export interface HoldNote {
  readonly holder: Buffer
  readonly note: Buffer | undefined
}

/** Encodes the refund of expired reservations of one key, each as of its expiry. */
export function encodeExpiredHolds(
  record: string,
  holds: readonly HoldNote[],
  { writer, body, time }: CallContext,
): ScriptCall {
  const args = new CallArguments(time)
  args.keyIndex(record)
  const patches: number[] = []
  args.holdOffset(record)
  body.clear()
  for (const { holder, note } of holds) {
    const { at, endsAt, charges } = decodeNote(note)
    body.uint8(HELD + EXPIRED)
    body.uint16(charges.length)
    body.bytes(holder)
    body.double(endsAt)
    for (const { limit, cost, mark } of charges) {
      body.uint16(args.addLimit(limit))
      body.uint16(1)
      body.uint16(args.longStateIndex(record, longTagIn(limit)))
      patches.push(body.length)
      body.uint16(0)
      for (const value of [at, cost, mark, 0]) body.double(value)
    }
  }
  for (const at of patches) body.patchUint16(at, args.holdIndex(0))
  const settlements = body.take()
  return { keys: args.keys, args: [args.header(writer), settlements] }
}

/** A limit without any state: to remove a reservation whose note was lost. */
const EMPTY_LIMIT = Buffer.concat([Buffer.of(1), Buffer.alloc(3 * 8 + 9 * 8 + 1)])

interface DecodedNote {
  readonly at: number
  readonly endsAt: number
  readonly charges: readonly { readonly limit: Buffer; readonly cost: number; readonly mark: number }[]
}

/** See `hold` in lua/decide.lua. */
function decodeNote(note: Buffer | undefined): DecodedNote {
  if (note === undefined) return { at: 0, endsAt: 0, charges: [{ limit: EMPTY_LIMIT, cost: 0, mark: 0 }] }
  const charges: { limit: Buffer; cost: number; mark: number }[] = []
  for (let at = 16; at < note.length; ) {
    const size = note.readUInt16LE(at + 16)
    charges.push({
      cost: note.readDoubleLE(at),
      mark: note.readDoubleLE(at + 8),
      limit: note.subarray(at + 18, at + 18 + size),
    })
    at += 18 + size
  }
  return { at: note.readDoubleLE(0), endsAt: note.readDoubleLE(8), charges }
}

const OUTCOMES: readonly (Settlement['outcome'] | 'holds' | 'calendar')[] = [
  'settled',
  'late',
  'gone',
  'holds',
  'calendar',
]

/** Decodes the reply of the settle script to one settlement. */
export function decodeSettlement(reply: Buffer): {
  readonly now: number
  readonly outcome: Settlement['outcome'] | 'holds' | 'calendar'
  readonly corrected: number
} {
  return { now: reply.readDoubleLE(0), outcome: OUTCOMES[reply[8]!] ?? 'gone', corrected: reply.readDoubleLE(9) }
}
