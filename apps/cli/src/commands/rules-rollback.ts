import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { flag } from '../parsing/flag.ts'
import { NOTE_FLAG } from './note-flag.ts'
import { versionText } from './staging.ts'

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
