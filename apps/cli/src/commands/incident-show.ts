import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { incidentResult } from './incident-result.ts'

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
