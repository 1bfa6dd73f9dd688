import { usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { flag } from '../parsing/flag.ts'
import { nearestName } from '../parsing/nearest-name.ts'
import { needed } from '../parsing/positional.ts'
import { shown } from '../parsing/shown.ts'
import { NOTE_FLAG } from './note-flag.ts'
import { stageOf, versionText } from './staging.ts'
import { versionNumber } from './version-number.ts'

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
  throw usageError(`${shown(text)} is no stage; expected one of ${STAGES.join(', ')}.${meant}`)
}
