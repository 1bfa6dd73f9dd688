import { isClientError } from '@sluice/client'
import { CliError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { inParts, readOverrides } from '../documents/override-file.ts'
import { countOf } from '../output/table.ts'
import { present } from '../parsing/caller-flags.ts'
import { needed } from '../parsing/positional.ts'
import { NOTE_FLAG } from './note-flag.ts'

/** Sets many overrides from a file. */
export const overridesImportCommand: Command = command({
  name: 'overrides import',
  summary: 'Import overrides from a file',
  description:
    'A list of overrides in YAML or JSON, or one JSON object in each line of a file that ends with .ndjson. They are sent in parts of up to 10000, each of which is taken as a whole or not at all. With --json: count.',
  args: { file: needed('The file; - for standard input.') },
  flags: { note: NOTE_FLAG },
  examples: ['overrides import contracts.yaml --note "contracts of November"'],
  asksService: true,
  run: async ({ args: { file }, flags: { note } }, { client, readText, progress }) => {
    const overrides = readOverrides(await readText(file), file)
    let count = 0
    for (const part of inParts(overrides)) {
      progress.say(`setting overrides: ${count} of ${overrides.length}`)
      try {
        count += (await client.call('bulkOverrides', { body: { overrides: part, ...present({ note }) } })).count
      } catch (error) {
        if (count === 0 || !isClientError(error)) throw error
        const next = `The first ${count} of ${overrides.length} are set; import the rest, or all again.`
        throw new CliError('SLUICE_CLI_PART_DONE', { detail: `${error.code}: ${error.detail} ${next}`, cause: error })
      }
    }
    return { value: { count }, text: `Set ${countOf(count, 'override')}.` }
  },
})
