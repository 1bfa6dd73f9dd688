import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { flag } from '../parsing/flag.ts'
import { incidentResult } from './incident-result.ts'

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
