import { decodeSnowflake } from '@sluice/client'
import { usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { table } from '../output/table.ts'
import { several } from '../parsing/positional.ts'
import { shown } from '../parsing/shown.ts'

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
      if (!isId(id)) throw usageError(`${shown(id)} is no id; expected decimal digits, at most 9223372036854775807.`)
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
