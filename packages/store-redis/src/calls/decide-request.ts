import type { Batch } from '@sluice/core/internal'
import type { ByteWriter } from '../wire/byte-writer.ts'
import type { CallParts, ScriptCall } from '../wire/call-arguments.ts'
import { CallTable } from '../wire/call-arguments.ts'
import { codeOf } from '../wire/limit-encoding.ts'
import type { QuestionGroup } from './batch-group.ts'
import type { CallPlan, Run } from './call-builder.ts'

/** Flags of a question; see lua/decide-n.lua. */
const CHARGE = 1
const PARTIAL = 2
const ENTITLED = 4
const HOLD = 8
const LEASE = 16

/** The call that asks everything of a plan, in order. `nameOf` gives the record of a caller's key. */
export function decideCall(plan: CallPlan, parts: CallParts): ScriptCall {
  const { writer, body } = parts
  const table = new CallTable(parts.time)
  if (plan.groups.length === 0) {
    writeRuns(plan.runs, table, parts)
    return { keys: table.keys, args: [table.opening(writer, body)] }
  }
  const { questions, noted } = writeQuestions(plan.groups, table, parts)
  writeRuns(plan.runs, table, parts)
  return { keys: table.keys, args: [table.opening(writer, body), questions(), ...noted] }
}

function writeRuns(runs: readonly Run[], table: CallTable, { body, nameOf }: CallParts): void {
  // A run asks about each subject once, so that with a single one no key can be there already.
  const isAlone = runs.length === 1 && table.isEmpty
  body.clear()
  for (const { plan, cost, groups } of runs) {
    body.uint16(plan.limits.length)
    body.double(cost)
    body.uint16(groups.length)
    for (const limit of plan.limits) body.uint16(table.limitNumber(limit))
    for (const { first, size } of groups) {
      const record = nameOf(first.items[0]!.key)
      body.uint16(isAlone ? table.newKeyNumber(record) : table.keyNumber(record))
      body.uint16(size)
    }
  }
}

function writeQuestions(
  groups: readonly QuestionGroup[],
  table: CallTable,
  { writer, time, nameOf }: CallParts,
): { readonly questions: () => Buffer; readonly noted: readonly Buffer[] } {
  const noted: Buffer[] = []
  const patches: { readonly at: number; readonly place: number }[] = []
  writer.clear()
  for (const { first, size } of groups) {
    writeQuestion(writer, first, size)
    for (const item of first.items) {
      const code = codeOf(item.limit)
      const record = nameOf(item.key)
      writer.uint16(table.limitNumber(item.limit))
      writer.uint16(table.keyNumber(record))
      writer.uint16(table.longNumber(record, code.longTag))
      if (first.holdMicros > 0) {
        patches.push({ at: writer.length, place: table.holdPlace(record) })
        noted.push(code.bytes(time.aboutMicros))
      }
      writer.uint16(0)
      writer.double(item.cost)
    }
  }
  const bytes = writer.take()
  // The numbers of holds come after those of all records, which are known only when everything is written.
  const questions = (): Buffer => {
    for (const { at, place } of patches) bytes.writeUInt16LE(table.holdNumber(place), at)
    return bytes
  }
  return { questions, noted }
}

function writeQuestion(writer: ByteWriter, batch: Batch, times: number): void {
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
