import type { IncidentAnswer } from '@sluice/contract'
import type { Command, CommandResult } from '../../command-line/command.ts'
import { command, flag } from '../../command-line/command.ts'
import { present } from '../../command-line/shared-flags.ts'
import { instantText } from '../../output/text.ts'

const incidentShowCommand: Command = command({
  name: 'incident show',
  summary: 'Show the incident mode',
  description:
    'Also shows how many rules have incident limits. With --json: entry, revision, changedAt, changedBy, ' +
    'affectedRules and warning.',
  args: {},
  flags: {},
  examples: ['incident show'],
  asksService: true,
  run: async (_, { client }) => incidentResult(await client.call('getIncident')),
})

const incidentStartCommand: Command = command({
  name: 'incident start',
  summary: 'Lower limits because of an incident',
  description:
    'Multiplies limits by the "incident" factor of each rule or of the rule set, on all nodes within seconds. ' +
    'Warns if no rule has one. With --json: entry, revision, changedAt, changedBy, affectedRules and warning.',
  args: {},
  flags: { until: flag('instant', '<when>', 'When it ends. Default: until "sluice incident end".') },
  examples: ['incident start --until 30m'],
  asksService: true,
  run: async ({ flags: { until } }, { client }) =>
    incidentResult(await client.call('putIncident', { body: { active: true, ...present({ until }) } })),
})

const incidentEndCommand: Command = command({
  name: 'incident end',
  summary: 'End an incident',
  description: 'Restores the normal limits. With --json: entry, revision, changedAt, changedBy and affectedRules.',
  args: {},
  flags: {},
  examples: ['incident end'],
  asksService: true,
  run: async (_, { client }) => incidentResult(await client.call('putIncident', { body: { active: false } })),
})

function incidentResult(value: IncidentAnswer): CommandResult {
  const { entry, affectedRules, warning } = value
  if (!entry.active) return { value, text: 'Incident mode is off.' }
  const end = entry.until === undefined ? 'until ended by hand' : `until ${instantText(entry.until)}`
  if (warning !== undefined) return { value, text: `Incident mode is on ${end}.\nWARNING: ${warning}` }
  const rules =
    affectedRules === 1 ? '1 rule uses its incident limit' : `${affectedRules} rules use their incident limits`
  return { value, text: `Incident mode is on ${end}: ${rules}.` }
}

export const incidentCommands: readonly Command[] = [incidentShowCommand, incidentStartCommand, incidentEndCommand]
