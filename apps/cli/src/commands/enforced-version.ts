import type { Client } from '@sluice/client'
import { CliError } from '../cli-error.ts'

/** Number of the version that is enforced. Throws `SLUICE_CLI_NOT_FOUND` when none is. */
export async function enforcedVersion(client: Client): Promise<number> {
  for await (const { number, stage } of client.items('listVersions')) if (stage === 'enforce') return number
  throw new CliError('SLUICE_CLI_NOT_FOUND', {
    detail: 'No version of the rules is enforced. "sluice rules put" makes one.',
  })
}
