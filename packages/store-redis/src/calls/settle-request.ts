import type { Settlement } from '@sluice/core'
import type { Receipt } from '@sluice/core/internal'
import type { CallParts, ScriptCall } from '../wire/call-arguments.ts'
import { CallTable } from '../wire/call-arguments.ts'
import { codeOf, longTagIn } from '../wire/limit-encoding.ts'

/** Flags of a settlement; see lua/settle-n.lua. */
const HELD = 1
const LEASED = 2
const RUN_OUT = 4
const STRIKE_ONLY = 8

/** The call that settles a receipt. With `strikeOnly` a held charge is made to stand, if it is still held. */
export function settleCall(
  receipt: Receipt,
  { actuals, strikeOnly }: { readonly actuals: readonly number[]; readonly strikeOnly: boolean },
  { writer, body, time, nameOf }: CallParts,
): ScriptCall {
  const table = new CallTable(time)
  const patches: { readonly at: number; readonly place: number }[] = []
  let flags = strikeOnly ? STRIKE_ONLY : 0
  if (receipt.held) flags += HELD
  if (receipt.leaseMicros > 0) flags += LEASED
  body.clear()
  body.uint8(flags)
  body.uint16(receipt.charges.length)
  body.double(receipt.holder)
  body.double(receipt.leaseMicros)
  for (const [index, { limit, key, at, cost, mark }] of receipt.charges.entries()) {
    const record = nameOf(key)
    body.uint16(table.limitNumber(limit))
    body.uint16(table.keyNumber(record))
    body.uint16(table.longNumber(record, codeOf(limit).longTag))
    if (receipt.held) patches.push({ at: body.length, place: table.holdPlace(record) })
    body.uint16(0)
    for (const value of [at, cost, mark, actuals[index]!]) body.double(value)
  }
  for (const { at, place } of patches) body.patchUint16(at, table.holdNumber(place))
  const settlements = body.take()
  return { keys: table.keys, args: [table.opening(writer), settlements] }
}

/** One reservation of a subject as it is noted in Redis: its holder, and what it was charged, if that is still known. */
export interface HoldNote {
  readonly holder: Buffer
  readonly note: Buffer | undefined
}

/** The call that gives back reservations of one subject that have run out, each as of its end. */
export function giveBackCall(
  record: string,
  holds: readonly HoldNote[],
  { writer, body, time }: CallParts,
): ScriptCall {
  const table = new CallTable(time)
  table.keyNumber(record)
  const patches: number[] = []
  table.holdPlace(record)
  body.clear()
  for (const { holder, note } of holds) {
    const { at, endsAt, charges } = readNote(note)
    body.uint8(HELD + RUN_OUT)
    body.uint16(charges.length)
    body.bytes(holder)
    body.double(endsAt)
    for (const { limit, cost, mark } of charges) {
      body.uint16(table.noteLimit(limit))
      body.uint16(1)
      body.uint16(table.longNumber(record, longTagIn(limit)))
      patches.push(body.length)
      body.uint16(0)
      for (const value of [at, cost, mark, 0]) body.double(value)
    }
  }
  for (const at of patches) body.patchUint16(at, table.holdNumber(0))
  const settlements = body.take()
  return { keys: table.keys, args: [table.opening(writer), settlements] }
}

/** The bytes of a limit that nothing is stored under: to strike off a reservation whose note was lost. */
const NOTHING = Buffer.concat([Buffer.of(1), Buffer.alloc(3 * 8 + 9 * 8 + 1)])

interface ReadNote {
  readonly at: number
  readonly endsAt: number
  readonly charges: readonly { readonly limit: Buffer; readonly cost: number; readonly mark: number }[]
}

/** See `hold` in lua/decide-n.lua. */
function readNote(note: Buffer | undefined): ReadNote {
  if (note === undefined) return { at: 0, endsAt: 0, charges: [{ limit: NOTHING, cost: 0, mark: 0 }] }
  const charges: { limit: Buffer; cost: number; mark: number }[] = []
  for (let place = 16; place < note.length; ) {
    const size = note.readUInt16LE(place + 16)
    charges.push({
      cost: note.readDoubleLE(place),
      mark: note.readDoubleLE(place + 8),
      limit: note.subarray(place + 18, place + 18 + size),
    })
    place += 18 + size
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

/** The reply of the settling script to one settlement. */
export function readSettlement(reply: Buffer): {
  readonly now: number
  readonly outcome: Settlement['outcome'] | 'holds' | 'calendar'
  readonly corrected: number
} {
  return { now: reply.readDoubleLE(0), outcome: OUTCOMES[reply[8]!] ?? 'gone', corrected: reply.readDoubleLE(9) }
}
