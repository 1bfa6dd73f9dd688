import { basename } from 'node:path'
import type { Client } from '@sluice/client'
import { isClientError } from '@sluice/client'
import type { EnvoyFile, RuleSetChange, StageRequest, Version } from '@sluice/contract'
import { ENVOY_PATH } from '@sluice/contract'
import { nearestName } from '@sluice/core/options'
import type { Command, Flag, GivenFlags } from '../../command-line/command.ts'
import { choice, command, flag, needed, optional, several, toggle } from '../../command-line/command.ts'
import { NOTE_FLAG, present } from '../../command-line/shared-flags.ts'
import { CliError, usageError } from '../../output/cli-error.ts'
import { facts, instantText, quoted, table } from '../../output/text.ts'

/** Flags for the stage of a new version. */
export const STAGE_FLAGS: {
  readonly stage: Flag<'text', 'draft' | 'shadow' | 'percent' | 'enforce'>
  readonly percent: Flag<'number'>
  readonly note: Flag<'text'>
} = {
  stage: choice(
    ['draft', 'shadow', 'percent', 'enforce'],
    'draft: no effect; shadow: measured; percent: enforced for a share of the callers; enforce: for all.',
  ),
  percent: flag('number', '<0-100>', 'Share of callers, for the stage percent.'),
  note: NOTE_FLAG,
}

const rulesVersionsCommand: Command = command({
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

const CHANGE_SIGNS: Readonly<Record<RuleSetChange['change'], string>> = {
  added: '+',
  removed: '-',
  changed: '~',
}

const rulesDiffCommand: Command = command({
  name: 'rules diff',
  summary: 'Compare two versions',
  description:
    'The changes from one version to another. With one argument, the changes from the enforced version to it. With ' +
    '--json: from, to, and changes with change, part, name, before and after.',
  args: { from: needed('Old version; with one argument, the new version.'), to: optional('New version.') },
  flags: {},
  examples: ['rules diff 12 13', 'rules diff 13'],
  asksService: true,
  run: async ({ args }, { client }) => {
    const last = parseVersion(args.to ?? args.from)
    const first = args.to === undefined ? await enforcedVersion(client) : parseVersion(args.from)
    const value = await client.call('diffVersions', { parameters: { number: first, to: last } })
    const lines = value.changes.flatMap(changeLines)
    const text = lines.length === 0 ? 'No differences.' : lines.join('\n')
    return { value, text: `from version ${first} to ${last}\n${text}` }
  },
})

function changeLines({ change, part, name, before, after }: RuleSetChange): readonly string[] {
  return [
    `${CHANGE_SIGNS[change]} ${part}${name === '' ? '' : ` ${name}`}`,
    ...(before === undefined ? [] : [`    - ${JSON.stringify(before)}`]),
    ...(after === undefined ? [] : [`    + ${JSON.stringify(after)}`]),
  ]
}

const rulesImportCommand: Command = command({
  name: 'rules import',
  summary: 'Import envoyproxy/ratelimit config',
  description:
    'Creates a version: the enforced rule set with the domains of the files instead of its own. It stays a draft ' +
    'unless --stage is set. POST /json of the service uses these domains once the version is enforced; the ' +
    'stages shadow and percent do not apply to domains. All problems of the files are listed with their ' +
    'lines.',
  args: { file: several('The files; - for standard input.') },
  flags: { ...STAGE_FLAGS, 'merge-domains': toggle('Allow several files for one domain.') },
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
    const value = await moveToStage(client, draft, next)
    return { value, text: `${createdText(value)}\n${await domainText(client, value)}` }
  },
})

async function domainText(client: Client, { number, stage }: Version): Promise<string> {
  const { ruleSet } = await client.call('getVersion', { parameters: { number } })
  const names = (ruleSet.domains ?? []).map(({ domain }) => domain).join(', ')
  return stage === 'enforce'
    ? `Enforced for the domains ${names}: check with POST ${ENVOY_PATH}.`
    : `The domains ${names} are not enforced yet: "sluice rules stage ${number} enforce" enforces them.`
}

const STAGES: readonly string[] = ['shadow', 'percent', 'enforce', 'retired']

const rulesStageCommand: Command = command({
  name: 'rules stage',
  summary: 'Change the stage of a version',
  description:
    'shadow: measured for every request, never enforced. percent: enforced for a share of the callers. enforce: ' +
    'enforced for all. retired: no longer used.',
  args: {
    version: needed('Number of the version.'),
    stage: needed(`One of ${STAGES.join(', ')}.`),
  },
  flags: {
    percent: flag('number', '<0-100>', 'Share of callers, for the stage percent.'),
    note: NOTE_FLAG,
    'if-revision': flag('whole', '<revision>', 'Only if the version still has this revision.'),
  },
  examples: ['rules stage 13 shadow', 'rules stage 13 percent --percent 10', 'rules stage 13 enforce'],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const number = parseVersion(args.version)
    const body = stageOf({ ...flags, stage: knownStage(args.stage) })
    const ifMatch = flags['if-revision']
    if (body === 'draft')
      throw usageError('A version cannot become a draft again; use "retired" to take it out of use.')
    const value = await client.call('stageVersion', { parameters: { number }, body, ifMatch })
    return { value, text: `Changed version ${number} to stage ${value.stage}.\n${versionText(value)}` }
  },
})

function knownStage(text: string): string {
  if (STAGES.includes(text) || text === 'draft') return text
  const nearest = nearestName(text, STAGES)
  const meant = nearest === undefined ? '' : ` Did you mean ${nearest}?`
  throw usageError(`${quoted(text)} is not a stage; expected one of ${STAGES.join(', ')}.${meant}`)
}

const rulesRollbackCommand: Command = command({
  name: 'rules rollback',
  summary: 'Roll back to an earlier version',
  description:
    'Enforces the previously enforced version, or another one, in one step. With --if-version, the second of two ' +
    'concurrent rollbacks fails instead of going back one more version.',
  args: {},
  flags: {
    to: flag('whole', '<version>', 'Version to enforce. Default: the previously enforced version.'),
    note: NOTE_FLAG,
    'if-version': flag('whole', '<version>', 'Only if this version is still enforced.'),
  },
  examples: ['rules rollback --if-version 13 --note "exports fail"', 'rules rollback --to 11'],
  asksService: true,
  run: async ({ flags: { to, note, 'if-version': ifMatch } }, { client }) => {
    const value = await client.call('rollbackVersion', { body: present({ to, note }), ifMatch })
    return { value, text: `Rolled back to version ${value.number}.\n${versionText(value)}` }
  },
})

/** The stage that the flags describe. Throws if `percent` and the stage do not match. */
export function stageOf({
  stage,
  percent,
  note,
}: Pick<GivenFlags<typeof STAGE_FLAGS>, 'percent' | 'note'> & { stage: string }): StageRequest | 'draft' {
  if ((stage === 'percent') !== (percent !== undefined)) {
    throw usageError(
      stage === 'percent'
        ? '--percent is missing: pass the share of callers, 0 to 100.'
        : '--percent needs the stage percent.',
    )
  }
  return stage === 'draft' ? 'draft' : { stage: stage as StageRequest['stage'], ...present({ percent, note }) }
}

/** Moves a new draft to a stage. Retires it if the service rejects that, so that it is not enforced by mistake. */
export async function moveToStage(client: Client, draft: Version, stage: StageRequest | 'draft'): Promise<Version> {
  if (stage === 'draft') return draft
  const parameters = { number: draft.number }
  try {
    return await client.call('stageVersion', { parameters, body: stage })
  } catch (error) {
    if (!isClientError(error)) throw error
    const problem = `${error.code}: ${error.detail}`
    // Without a response it may already be enforced, so it must not be retired.
    const isRejected = error.status !== undefined && error.status < 500
    const isRetired = isRejected && (await retire(client, draft.number))
    const next = isRetired
      ? `Version ${draft.number} was retired; nothing else changed.`
      : `Version ${draft.number} is stored: "sluice rules versions" shows its stage, "sluice rules stage ` +
        `${draft.number} ${stage.stage}" retries.`
    throw new CliError('SLUICE_CLI_NOT_STAGED', { detail: `${problem} ${next}`, cause: error })
  }
}

async function retire(client: Client, number: number): Promise<boolean> {
  try {
    await client.call('stageVersion', { parameters: { number }, body: { stage: 'retired' } })
    return true
  } catch (error) {
    if (!isClientError(error)) throw error
    return false
  }
}

export function createdText(version: Version): string {
  const { number, stage } = version
  const done =
    stage === 'enforce' ? `Created and enforced version ${number}.` : `Created version ${number} as ${stage}.`
  return `${done}\n${versionText(version)}`
}

function versionText(version: Version): string {
  const { number, stage, percent, basedOn, createdAt, createdBy, note } = version
  return facts([
    ['version', number],
    ['stage', stage === 'percent' ? `percent: ${percent} %` : stage],
    ['based on', basedOn],
    ['created', `${instantText(createdAt)} by ${createdBy}`],
    ['note', note],
  ])
}

function parseVersion(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw usageError(`${quoted(text)} is not a version; expected a number such as 12. "sluice rules versions" lists all.`)
}

/** Number of the enforced version. Throws `SLUICE_CLI_NOT_FOUND` if there is none. */
export async function enforcedVersion(client: Client): Promise<number> {
  for await (const { number, stage } of client.items('listVersions')) if (stage === 'enforce') return number
  throw new CliError('SLUICE_CLI_NOT_FOUND', {
    detail: 'No version of the rules is enforced. "sluice rules put" creates one.',
  })
}

export const versionCommands: readonly Command[] = [
  rulesDiffCommand,
  rulesImportCommand,
  rulesVersionsCommand,
  rulesStageCommand,
  rulesRollbackCommand,
]
