import type { IncidentAnswer } from '@sluice/contract'
import type { CommandResult } from '../command.ts'
import { instantText } from '../output/table.ts'

/** Whether there is an incident, until when, and what it changes. */
export function incidentResult(value: IncidentAnswer): CommandResult {
  const { entry, affectedRules, warning } = value
  if (!entry.active) return { value, text: 'No incident.' }
  const end = entry.until === undefined ? 'until somebody ends it' : `until ${instantText(entry.until)}`
  if (warning !== undefined) return { value, text: `Incident: declared ${end}.\nWARNING: ${warning}` }
  const rules = affectedRules === 1 ? '1 rule uses its' : `${affectedRules} rules use their`
  return { value, text: `Incident: ${rules} incident limits ${end}.` }
}
