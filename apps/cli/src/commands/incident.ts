import type { IncidentAnswer } from '@sluice/contract'
import { flag } from '../command-line/arguments.ts'
import type { Command, CommandResult } from '../command-line/command.ts'
import { command } from '../command-line/command.ts'
import { present } from '../command-line/shared-flags.ts'
import { instantText } from '../output/text.ts'

/** Shows whether an incident is active. */
export const incidentShowCommand: Command = command({
  name: 'incident show',
  summary: 'Show the incident mode',
  description:
    'Also says how many rules have limits for incidents. With --json: entry, revision, changedAt, changedBy, affectedRules and warning.',
  args: {},
  flags: {},
  examples: ['incident show'],
  asksService: true,
  run: async (_, { client }) => incidentResult(await client.call('getIncident')),
})

/** Lowers limits because of an incident. */
export const incidentStartCommand: Command = command({
  name: 'incident start',
  summary: 'Lower limits because of an incident',
  description:
    'Multiplies limits by the "incident" of each rule, or of the rule set, on all nodes within seconds. Warns when no rule has one. With --json: entry, revision, changedAt, changedBy, affectedRules and warning.',
  args: {},
  flags: { until: flag('instant', '<when>', 'It ends by itself then. Only by hand when left out.') },
  examples: ['incident start --until 30m'],
  asksService: true,
  run: async ({ flags: { until } }, { client }) =>
    incidentResult(await client.call('putIncident', { body: { active: true, ...present({ until }) } })),
})

/** Ends an incident. */
export const incidentEndCommand: Command = command({
  name: 'incident end',
  summary: 'End an incident',
  description: 'Limits are back to normal. With --json: entry, revision, changedAt, changedBy and affectedRules.',
  args: {},
  flags: {},
  examples: ['incident end'],
  asksService: true,
  run: async (_, { client }) => incidentResult(await client.call('putIncident', { body: { active: false } })),
})

/** Whether there is an incident, until when, and what it changes. */
function incidentResult(value: IncidentAnswer): CommandResult {
  const { entry, affectedRules, warning } = value
  if (!entry.active) return { value, text: 'No incident.' }
  const end = entry.until === undefined ? 'until somebody ends it' : `until ${instantText(entry.until)}`
  if (warning !== undefined) return { value, text: `Incident: declared ${end}.\nWARNING: ${warning}` }
  const rules = affectedRules === 1 ? '1 rule uses its' : `${affectedRules} rules use their`
  return { value, text: `Incident: ${rules} incident limits ${end}.` }
}
