import { CliError, usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { checkConfigFile } from '../documents/rules-file.ts'
import { countOf } from '../output/table.ts'
import { needed } from '../parsing/positional.ts'

/** Checks a configuration file without a service. */
export const rulesValidateCommand: Command = command({
  name: 'rules validate',
  summary: 'Check a configuration file',
  description:
    'Checks a file for --config with the code that the service itself checks it with when it starts. Lists every problem with its line. Needs no running service and changes nothing. Exits with 2 when the service would not start with the file. With --json: file and rules, the number of rules.',
  args: { file: needed('The file, YAML or JSON.') },
  flags: {},
  examples: ['rules validate sluice.yaml'],
  asksService: false,
  run: async ({ args: { file } }, { readText }) => {
    if (file === '-') throw usageError('Standard input is not supported here; expected the path of a file.')
    // For the message about a file that cannot be read.
    await readText(file)
    const { rules, problems } = await checkConfigFile(file)
    if (problems.length > 0) {
      const detail = `${file} has ${countOf(problems.length, 'problem')}, so the service would not start with it. Correct:`
      throw new CliError('SLUICE_CLI_INVALID_FILE', { detail, errors: problems })
    }
    const text = `${file} is valid: ${rules === 0 ? 'settings only, no rules' : countOf(rules, 'rule')}.`
    return { value: { file, rules }, text }
  },
})
