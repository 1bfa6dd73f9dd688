import type { Incident, Stored } from '@sluice/contract'
import type { CommandResult } from '../command.ts'
import { instantText } from '../output/table.ts'

/** Whether there is an incident, and until when. */
export function incidentResult(value: Stored<Incident>): CommandResult {
  const { active, until } = value.entry
  const end = until === undefined ? 'until somebody ends it' : `until ${instantText(until)}`
  return { value, text: active ? `Incident: limits are lowered ${end}.` : 'No incident.' }
}
