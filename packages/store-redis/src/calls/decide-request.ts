import type { Batch } from '@sluice/core/store'
import type { ByteWriter } from '../wire/byte-writer.ts'
import type { CallContext, ScriptCall } from '../wire/call-arguments.ts'
import { CallArguments } from '../wire/call-arguments.ts'
import { encodingOf } from '../wire/limit-encoding.ts'
import type { BatchGroup } from './batch-group.ts'
import type { BulkCheck, DecideCall } from './call-builder.ts'

/** Flags of a batch; see lua/decide.lua. */
const CHARGE = 1
const PARTIAL = 2
const ENTITLED = 4
const HOLD = 8
const LEASE = 16

/** Encodes a call of the decide script. */
export function encodeDecideCall(call: DecideCall, context: CallContext): ScriptCall {
  const { writer, body } = context
  const args = new CallArguments(context.time)
  if (call.groups.length === 0) {
    writeBulkChecks(call.bulkChecks, args, context)
    return { keys: args.keys, args: [args.header(writer, body)] }
  }
  const { batches, limits } = writeBatches(call.groups, args, context)
  writeBulkChecks(call.bulkChecks, args, context)
  return { keys: args.keys, args: [args.header(writer, body), batches(), ...limits] }
}

function writeBulkChecks(checks: readonly BulkCheck[], args: CallArguments, { body, recordOf }: CallContext): void {
  // A bulk check has each key once, so with a single one no key can be there already.
  const hasOnlyNewKeys = checks.length === 1 && args.isEmpty
  body.clear()
  for (const { limits, cost, groups } of checks) {
    body.uint16(limits.limits.length)
    body.double(cost)
    body.uint16(groups.length)
    for (const limit of limits.limits) body.uint16(args.limitIndex(limit))
    for (const { first, size } of groups) {
      const record = recordOf(first.items[0]!.key)
      body.uint16(hasOnlyNewKeys ? args.addKey(record) : args.keyIndex(record))
      body.uint16(size)
    }
  }
}

function writeBatches(
  groups: readonly BatchGroup[],
  args: CallArguments,
  { writer, time, recordOf }: CallContext,
): { readonly batches: () => Buffer; readonly limits: readonly Buffer[] } {
  const limits: Buffer[] = []
  const patches: { readonly at: number; readonly offset: number }[] = []
  writer.clear()
  for (const { first, size } of groups) {
    writeBatch(writer, first, size)
    for (const item of first.items) {
      const encoding = encodingOf(item.limit)
      const record = recordOf(item.key)
      writer.uint16(args.limitIndex(item.limit))
      writer.uint16(args.keyIndex(record))
      writer.uint16(args.longStateIndex(record, encoding.longTag))
      if (first.holdMicros > 0) {
        patches.push({ at: writer.length, offset: args.holdOffset(record) })
        limits.push(encoding.bytes(time.aboutMicros))
      }
      writer.uint16(0)
      writer.double(item.cost)
    }
  }
  const bytes = writer.take()
  // Hold keys come after all records, whose number is known only when everything is written.
  const batches = (): Buffer => {
    for (const { at, offset } of patches) bytes.writeUInt16LE(args.holdIndex(offset), at)
    return bytes
  }
  return { batches, limits }
}

function writeBatch(writer: ByteWriter, batch: Batch, times: number): void {
  const span = batch.holdMicros || batch.leaseMicros
  let flags = 0
  if (batch.charge) flags += CHARGE
  if (batch.partial) flags += PARTIAL
  if (batch.entitled) flags += ENTITLED
  if (batch.holdMicros > 0) flags += HOLD
  else if (batch.leaseMicros > 0) flags += LEASE
  writer.uint8(flags)
  writer.uint16(times)
  writer.uint16(batch.items.length)
  writer.double(batch.holder)
  writer.double(span)
}
