import { decodeSnowflake } from '@sluice/client'
import { MOST_IDS } from '@sluice/contract'
import type { Command } from '../command-line/command.ts'
import { command, flag, several } from '../command-line/command.ts'
import { usageError } from '../output/cli-error.ts'
import { quoted, table } from '../output/text.ts'

const idNewCommand: Command = command({
  name: 'id new',
  summary: 'Generate unique ids',
  description: 'Unique 63-bit ids, ordered by time, one per line. With --json: ids, as strings.',
  args: {},
  flags: { count: flag('whole', '<count>', 'Number of ids, 1 to 1000. Default: 1.') },
  examples: ['id new --count 5'],
  asksService: true,
  run: async ({ flags: { count = 1 } }, { client }) => {
    if (count < 1 || count > MOST_IDS) throw usageError(`--count got ${count}; expected 1 to ${MOST_IDS}.`)
    const value = await client.call('ids', { parameters: { count } })
    return { value, text: value.ids.join('\n') }
  },
})

const idDecodeCommand: Command = command({
  name: 'id decode',
  summary: 'Decode ids',
  description:
    'Shows when and where ids were created. Needs no service. With --json: ids with id, madeAt, timestampMs, ' +
    'datacenter, machine and sequence.',
  args: { id: several('The ids.') },
  flags: {},
  examples: ['id decode 1987654321098765432'],
  asksService: false,
  run: ({ args }) => {
    const ids = args.id.map((id) => {
      if (!isId(id))
        throw usageError(`${quoted(id)} is not an id; expected decimal digits, at most 9223372036854775807.`)
      const parts = decodeSnowflake(id)
      return { id, madeAt: new Date(parts.timestampMs).toISOString(), ...parts }
    })
    const rows = ids.map(({ id, madeAt, datacenter, machine, sequence }) => [
      id,
      madeAt,
      String(datacenter),
      String(machine),
      String(sequence),
    ])
    return Promise.resolve({
      value: { ids },
      text: table(['id', 'created', 'datacenter', 'machine', 'sequence'], rows),
    })
  },
})

function isId(text: string): boolean {
  return /^\d{1,19}$/.test(text) && BigInt(text) < 2n ** 63n
}

export const idCommands: readonly Command[] = [idNewCommand, idDecodeCommand]
