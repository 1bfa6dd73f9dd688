import type { Version } from '@sluice/contract'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { instantText, table } from '../output/table.ts'
import { flag } from '../parsing/flag.ts'

/** Lists versions. */
export const rulesVersionsCommand: Command = command({
  name: 'rules versions',
  summary: 'List versions of the rules',
  description: 'Newest first, with the stage of each. With --json: items.',
  args: {},
  flags: { limit: flag('whole', '<count>', 'Maximum number of versions. Default: 20.') },
  examples: ['rules versions --limit 5'],
  asksService: true,
  run: async ({ flags: { limit = 20 } }, { client }) => {
    const items: Version[] = []
    for await (const version of client.items('listVersions')) {
      if (items.length >= limit) break
      items.push(version)
    }
    const rows = items.map(({ number, stage, percent, basedOn, createdAt, createdBy, note }) => [
      String(number),
      stage === 'percent' ? `${percent} %` : stage,
      basedOn === undefined ? '-' : String(basedOn),
      instantText(createdAt),
      createdBy,
      note ?? '-',
    ])
    return { value: { items }, text: table(['version', 'stage', 'based on', 'created', 'by', 'note'], rows) }
  },
})
