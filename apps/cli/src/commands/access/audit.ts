import type { AuditRecord } from '@sluice/contract'
import type { Command } from '../../command-line/command.ts'
import { command, flag } from '../../command-line/command.ts'
import { present } from '../../command-line/shared-flags.ts'
import { instantText, table } from '../../output/text.ts'

const DEFAULT_COUNT = 50

const auditListCommand: Command = command({
  name: 'audit list',
  summary: 'List the audit log',
  description:
    'Every change, newest first: when, by which API key, what, and why. With --json: items with details, before ' +
    'and after.',
  args: {},
  flags: {
    by: flag('text', '<name>', 'Only changes made with the API key of this name.'),
    'key-id': flag('text', '<id>', 'Only changes made with the API key of this id.'),
    action: flag('text', '<action>', 'Only this action, such as override.put.'),
    since: flag('instant', '<when>', 'Only changes since then.'),
    count: flag('whole', '<count>', `Maximum number of records. Default: ${DEFAULT_COUNT}.`),
  },
  examples: ['audit list --by deploy --since 2027-01-01', 'audit list --action version.rollback --count 5'],
  asksService: true,
  run: async ({ flags: { by, 'key-id': keyId, action, since, count = DEFAULT_COUNT } }, { client }) => {
    const parameters = { limit: Math.max(1, Math.min(count, 1000)), ...present({ by, keyId, action, since }) }
    const items: AuditRecord[] = []
    if (count > 0) {
      for await (const record of client.items('listAudit', { parameters })) {
        if (items.push(record) >= count) break
      }
    }
    const rows = items.map((record) => [
      instantText(record.at),
      record.by,
      record.keyId ?? '-',
      record.action,
      record.target,
      record.note ?? '-',
    ])
    return { value: { items }, text: table(['when', 'by', 'key', 'action', 'target', 'note'], rows) }
  },
})

export const auditCommands: readonly Command[] = [auditListCommand]
