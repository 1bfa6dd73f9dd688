import { basename } from 'node:path'
import type { Client } from '@sluice/client'
import { isClientError } from '@sluice/client'
import type { EnvoyFile, RuleSetChange, StageRequest, Version } from '@sluice/contract'
import { ENVOY_PATH } from '@sluice/contract'
import { nearestName } from '@sluice/core/options'
import type { Flag, GivenFlags } from '../command-line/arguments.ts'
import { choice, flag, needed, optional, several, toggle } from '../command-line/arguments.ts'
import type { Command } from '../command-line/command.ts'
import { command } from '../command-line/command.ts'
import { NOTE_FLAG, present } from '../command-line/shared-flags.ts'
import { CliError, usageError } from '../output/cli-error.ts'
import { facts, instantText, quoted, table } from '../output/text.ts'

/** What becomes of a new version. */
export const STAGE_FLAGS: {
  readonly stage: Flag<'text', 'draft' | 'shadow' | 'percent' | 'enforce'>
  readonly percent: Flag<'number'>
  readonly note: Flag<'text'>
} = {
  stage: choice(
    ['draft', 'shadow', 'percent', 'enforce'],
    'draft: kept without effect; shadow: measured; percent: enforced for a share of the callers; enforce: for all.',
  ),
  percent: flag('number', '<0-100>', 'The share, with the stage percent.'),
  note: NOTE_FLAG,
}

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

/** What stands before a change. */
const CHANGE_SIGNS: Readonly<Record<RuleSetChange['change'], string>> = {
  added: '+',
  removed: '-',
  changed: '~',
}

/** Compares two versions. */
export const rulesDiffCommand: Command = command({
  name: 'rules diff',
  summary: 'Compare two versions',
  description:
    'What changes from one version to another; with one version, what changes when it replaces the enforced one. With --json: from, to, and changes with change, part, name, before and after.',
  args: { from: needed('The version before; alone, the one after.'), to: optional('The version after.') },
  flags: {},
  examples: ['rules diff 12 13', 'rules diff 13'],
  asksService: true,
  run: async ({ args }, { client }) => {
    const last = versionNumber(args.to ?? args.from)
    const first = args.to === undefined ? await enforcedVersion(client) : versionNumber(args.from)
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

const STAGES: readonly string[] = ['shadow', 'percent', 'enforce', 'retired']

/** Changes the stage of a version. */
export const rulesStageCommand: Command = command({
  name: 'rules stage',
  summary: 'Change the stage of a version',
  description:
    'shadow: measured for every request, never enforced. percent: enforced for a share of the callers. enforce: enforced for all. retired: taken back.',
  args: {
    version: needed('Number of the version.'),
    stage: needed(`One of ${STAGES.join(', ')}.`),
  },
  flags: {
    percent: flag('number', '<0-100>', 'The share, with the stage percent.'),
    note: NOTE_FLAG,
    'if-revision': flag('whole', '<revision>', 'Only when the version still has this revision.'),
  },
  examples: ['rules stage 13 shadow', 'rules stage 13 percent --percent 10', 'rules stage 13 enforce'],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const number = versionNumber(args.version)
    const body = stageOf({ ...flags, stage: knownStage(args.stage) })
    const ifMatch = flags['if-revision']
    if (body === 'draft') throw usageError('A version does not become a draft again; "retired" takes it back.')
    const value = await client.call('stageVersion', { parameters: { number }, body, ifMatch })
    return { value, text: `Changed version ${number} to stage ${value.stage}.\n${versionText(value)}` }
  },
})

function knownStage(text: string): string {
  if (STAGES.includes(text) || text === 'draft') return text
  const nearest = nearestName(text, STAGES)
  const meant = nearest === undefined ? '' : ` Did you mean ${nearest}?`
  throw usageError(`${quoted(text)} is no stage; expected one of ${STAGES.join(', ')}.${meant}`)
}

/** Rolls back to an earlier version. */
export const rulesRollbackCommand: Command = command({
  name: 'rules rollback',
  summary: 'Roll back to an earlier version',
  description:
    'Enforces the version that was enforced before, or another one, in one step. With --if-version, of two who go back from one version the second is refused, and does not go back one more.',
  args: {},
  flags: {
    to: flag('whole', '<version>', 'The version to enforce. Default: the one enforced before.'),
    note: NOTE_FLAG,
    'if-version': flag('whole', '<version>', 'Only when this version is still the enforced one.'),
  },
  examples: ['rules rollback --if-version 13 --note "exports fail"', 'rules rollback --to 11'],
  asksService: true,
  run: async ({ flags: { to, note, 'if-version': ifMatch } }, { client }) => {
    const value = await client.call('rollbackVersion', { body: present({ to, note }), ifMatch })
    return { value, text: `Rolled back to version ${value.number}.\n${versionText(value)}` }
  },
})

/** What becomes of a version: `draft`, or the stage that it moves on to. */
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

/** Moves a new draft on. Retires it when the service rejects that, so that nothing is left to be enforced by mistake. */
export async function staged(client: Client, draft: Version, stage: StageRequest | 'draft'): Promise<Version> {
  if (stage === 'draft') return draft
  const parameters = { number: draft.number }
  try {
    return await client.call('stageVersion', { parameters, body: stage })
  } catch (error) {
    if (!isClientError(error)) throw error
    const problem = `${error.code}: ${error.detail}`
    // Without an answer it may have been enforced, and is not to be taken back.
    const isRejected = error.status !== undefined && error.status < 500
    const isRetired = isRejected && (await retire(client, draft.number))
    const next = isRetired
      ? `Version ${draft.number} was retired; nothing else was changed.`
      : `Version ${draft.number} is stored: "sluice rules versions" shows its stage, "sluice rules stage ${draft.number} ${stage.stage}" tries again.`
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

/** A version that was just made, for people. */
export function madeText(version: Version): string {
  const { number, stage } = version
  const done =
    stage === 'enforce' ? `Created and enforced version ${number}.` : `Created version ${number} as ${stage}.`
  return `${done}\n${versionText(version)}`
}

/** A version, for people. */
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

/** The number of a version, as it was typed. */
function versionNumber(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw usageError(`${quoted(text)} is no version; expected a number such as 12. "sluice rules versions" lists all.`)
}

/** Number of the version that is enforced. Throws `SLUICE_CLI_NOT_FOUND` when none is. */
export async function enforcedVersion(client: Client): Promise<number> {
  for await (const { number, stage } of client.items('listVersions')) if (stage === 'enforce') return number
  throw new CliError('SLUICE_CLI_NOT_FOUND', {
    detail: 'No version of the rules is enforced. "sluice rules put" makes one.',
  })
}
