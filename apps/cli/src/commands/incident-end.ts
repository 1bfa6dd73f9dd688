import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { incidentResult } from './incident-result.ts'

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
