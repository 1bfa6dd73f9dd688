import { decodeSnowflake } from '@sluice/client'
import { MOST_IDS } from '@sluice/contract'
import { flag, several } from '../command-line/arguments.ts'
import type { Command } from '../command-line/command.ts'
import { command } from '../command-line/command.ts'
import { usageError } from '../output/cli-error.ts'
import { quoted, table } from '../output/text.ts'

/** Generates unique ids. */
export const idNewCommand: Command = command({
  name: 'id new',
  summary: 'Generate unique ids',
  description:
    'Ids of 63 bits that no other node makes, rising with time, one in each line. With --json: ids, as texts.',
  args: {},
  flags: { count: flag('whole', '<count>', 'How many, 1 to 1000. Default: 1.') },
  examples: ['id new --count 5'],
  asksService: true,
  run: async ({ flags: { count = 1 } }, { client }) => {
    if (count < 1 || count > MOST_IDS) throw usageError(`--count got ${count}; expected 1 to ${MOST_IDS}.`)
    const value = await client.call('ids', { parameters: { count } })
    return { value, text: value.ids.join('\n') }
  },
})

/** Decodes ids. */
export const idDecodeCommand: Command = command({
  name: 'id decode',
  summary: 'Decode ids',
  description:
    'Shows when and where ids were made. Needs no service. With --json: ids with id, madeAt, timestampMs, datacenter, machine and sequence.',
  args: { id: several('The ids.') },
  flags: {},
  examples: ['id decode 1987654321098765432'],
  asksService: false,
  run: ({ args }) => {
    const ids = args.id.map((id) => {
      if (!isId(id)) throw usageError(`${quoted(id)} is no id; expected decimal digits, at most 9223372036854775807.`)
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
      text: table(['id', 'made at', 'datacenter', 'machine', 'sequence'], rows),
    })
  },
})

function isId(text: string): boolean {
  return /^\d{1,19}$/.test(text) && BigInt(text) < 2n ** 63n
}
