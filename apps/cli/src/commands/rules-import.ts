import { basename } from 'node:path'
import type { Client } from '@sluice/client'
import type { EnvoyFile, Version } from '@sluice/contract'
import { ENVOY_PATH } from '@sluice/contract'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { toggle } from '../parsing/flag.ts'
import { several } from '../parsing/positional.ts'
import { madeText, STAGE_FLAGS, staged, stageOf } from './staging.ts'

/** Imports files of envoyproxy/ratelimit. */
export const rulesImportCommand: Command = command({
  name: 'rules import',
  summary: 'Import envoyproxy/ratelimit config',
  description:
    'Reads files in the form of envoyproxy/ratelimit. The new version is the enforced rule set with their domains in the place of its own; it is kept as a draft unless --stage says otherwise. POST /json of the service decides by these domains once the version is enforced; in shadow, or for a share of the callers, they are neither measured nor enforced. Everything that is wrong in any of the files is listed with its line.',
  args: { file: several('The files; - for standard input.') },
  flags: { ...STAGE_FLAGS, 'merge-domains': toggle('Several files may have parts of one domain.') },
  examples: ['rules import shop.yaml mail.yaml', 'rules import shop.yaml --stage enforce'],
  asksService: true,
  run: async ({ args, flags }, { client, readText }) => {
    const next = stageOf({ ...flags, stage: flags.stage ?? 'draft' })
    const files: EnvoyFile[] = []
    for (const path of args.file) files.push({ name: basename(path), text: await readText(path) })
    const mergeDomains = flags['merge-domains']
    const draft = await client.call('importVersion', {
      body: { files, mergeDomains, ...present({ note: flags.note }) },
    })
    const value = await staged(client, draft, next)
    return { value, text: `${madeText(value)}\n${await domainText(client, value)}` }
  },
})

/** What becomes of the domains of a version. */
async function domainText(client: Client, { number, stage }: Version): Promise<string> {
  const { ruleSet } = await client.call('getVersion', { parameters: { number } })
  const names = (ruleSet.domains ?? []).map(({ domain }) => domain).join(', ')
  return stage === 'enforce'
    ? `Enforced for the domains ${names}: ask with POST ${ENVOY_PATH}.`
    : `Nothing is limited by the domains ${names} yet: "sluice rules stage ${number} enforce" enforces them.`
}
