import type { Command } from '../../command-line/command.ts'
import { allItems, command, LARGEST_PAGE, needed, toggle } from '../../command-line/command.ts'
import { instantText, table } from '../../output/text.ts'

const sessionsListCommand: Command = command({
  name: 'sessions list',
  summary: 'List dashboard sessions',
  description: 'Sessions of this API key, or of all keys with --all, newest first. With --json: items.',
  args: {},
  flags: { all: toggle('Sessions of all keys. Needs the role admin.') },
  examples: ['sessions list --all'],
  asksService: true,
  run: async ({ flags: { all } }, context) => {
    const parameters = { limit: LARGEST_PAGE, of: all ? 'all' : 'own' } as const
    const items = await allItems(context.client.items('listSessions', { parameters }), context)
    const rows = items.map((session) => [
      session.id,
      session.name,
      session.role,
      instantText(session.createdAt),
      instantText(session.lastSeenAt),
      instantText(session.expiresAt),
    ])
    return { value: { items }, text: table(['id', 'key', 'role', 'since', 'last seen', 'ends'], rows) }
  },
})

const sessionsEndCommand: Command = command({
  name: 'sessions end',
  summary: 'End a dashboard session',
  description: 'It ends at once on the node that serves the request, and on all nodes within seconds.',
  args: { id: needed('Id of the session in "sluice sessions list".') },
  flags: {},
  examples: ['sessions end q0oJ3v5kYw6l8o1n'],
  asksService: true,
  run: async ({ args: { id } }, { client }) => {
    await client.call('endSession', { parameters: { id } })
    return { value: { ended: { id } }, text: `Ended session ${id}.` }
  },
})

export const sessionCommands: readonly Command[] = [sessionsListCommand, sessionsEndCommand]
