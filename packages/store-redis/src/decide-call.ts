import type { Batch } from '@sluice/core/internal'
import type { ByteWriter } from './byte-writer.ts'
import type { CallParts, ScriptCall } from './call-table.ts'
import { CallTable } from './call-table.ts'
import { codeOf } from './limit-code.ts'
import type { QuestionGroup } from './question-group.ts'
import type { CallPlan, Run } from './turn.ts'

/** Flags of a question; see lua/decide-n.lua. */
const CHARGE = 1
const PARTIAL = 2
const ENTITLED = 4
const HOLD = 8
const LEASE = 16

/** The call that asks everything of a plan, in order. `nameOf` gives the record of a caller's key. */
export function decideCall(plan: CallPlan, { writer, time, nameOf }: CallParts): ScriptCall {
  const table = new CallTable(time)
  const runs = writeRuns(plan.runs, table, { writer, nameOf })
  const { questions, noted } = writeQuestions(plan.groups, table, { writer, time, nameOf })
  return { keys: table.keys, args: [table.head(writer), table.limits(writer), runs, questions, ...noted] }
}

function writeRuns(
  runs: readonly Run[],
  table: CallTable,
  { writer, nameOf }: Pick<CallParts, 'writer' | 'nameOf'>,
): Buffer {
  writer.clear()
  for (const { plan, cost, groups } of runs) {
    writer.uint16(plan.limits.length)
    writer.double(cost)
    writer.uint16(groups.length)
    for (const limit of plan.limits) writer.uint16(table.limitNumber(limit))
    for (const { first, size } of groups) {
      writer.uint16(table.keyNumber(nameOf(first.items[0]!.key)))
      writer.uint16(size)
    }
  }
  return writer.take()
}

function writeQuestions(
  groups: readonly QuestionGroup[],
  table: CallTable,
  { writer, time, nameOf }: CallParts,
): { readonly questions: Buffer; readonly noted: readonly Buffer[] } {
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
  for (const { at, place } of patches) writer.patchUint16(at, table.holdNumber(place))
  return { questions: writer.take(), noted }
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
