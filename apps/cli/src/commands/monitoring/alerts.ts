import type { Alert } from '@sluice/contract'
import type { Command } from '../../command-line/command.ts'
import { allItems, checkDuration, command, LARGEST_PAGE, needed } from '../../command-line/command.ts'
import { NOTE_FLAG, present } from '../../command-line/shared-flags.ts'
import { instantText, table } from '../../output/text.ts'

const alertsListCommand: Command = command({
  name: 'alerts list',
  summary: 'List alerts',
  description: 'Firing alerts first, then resolved ones, newest first. With --json: items.',
  args: {},
  flags: {},
  examples: ['alerts list'],
  asksService: true,
  run: async (_, context) => {
    const items = await allItems(context.client.items('listAlerts', { parameters: { limit: LARGEST_PAGE } }), context)
    return { value: { items }, text: alertTable(items) }
  },
})

const alertsAcknowledgeCommand: Command = command({
  name: 'alerts acknowledge',
  summary: 'Acknowledge an alert',
  description: 'Sends no further messages while it fires. With --json: the alert.',
  args: { id: needed('Id of the alert.') },
  flags: { note: NOTE_FLAG },
  examples: ['alerts acknowledge 1987654321098765432 --note "load test"'],
  asksService: true,
  run: async ({ args: { id }, flags: { note } }, { client }) => {
    const value = await client.call('acknowledgeAlert', { parameters: { id }, body: present({ note }) })
    return { value, text: `Acknowledged alert ${id}.\n${alertTable([value])}` }
  },
})

const alertsSilenceCommand: Command = command({
  name: 'alerts silence',
  summary: 'Silence an alert',
  description: 'Sends no messages until the silence ends. The alert stays listed. With --json: the alert.',
  args: { id: needed('Id of the alert.'), duration: needed('Duration such as 15m or 1h30m.') },
  flags: { note: NOTE_FLAG },
  examples: ['alerts silence 1987654321098765432 2h --note "load test until noon"'],
  asksService: true,
  run: async ({ args: { id, duration }, flags: { note } }, { client }) => {
    checkDuration(duration)
    const body = { duration, ...present({ note }) }
    const value = await client.call('silenceAlert', { parameters: { id }, body })
    return { value, text: `Silenced alert ${id} for ${duration}.\n${alertTable([value])}` }
  },
})

const alertsDeadLettersCommand: Command = command({
  name: 'alerts dead-letters',
  summary: 'List undelivered alert messages',
  description: 'Messages whose delivery attempts all failed, newest first. With --json: items.',
  args: {},
  flags: {},
  examples: ['alerts dead-letters'],
  asksService: true,
  run: async (_, context) => {
    const items = await allItems(
      context.client.items('listDeadLetters', { parameters: { limit: LARGEST_PAGE } }),
      context,
    )
    const rows = items.map((letter) => [
      letter.id,
      letter.alertId ?? letter.cidr ?? '-',
      letter.destination,
      String(letter.attempts),
      instantText(letter.lastAttemptAt),
      letter.error,
    ])
    return { value: { items }, text: table(['id', 'alert', 'destination', 'attempts', 'last', 'error'], rows) }
  },
})

const alertsRetryCommand: Command = command({
  name: 'alerts retry',
  summary: 'Retry an undelivered message',
  description:
    'Sends it again with the same idempotency key. If that fails, "sluice alerts dead-letters" lists it again.',
  args: { id: needed('Id of the message in "sluice alerts dead-letters".') },
  flags: {},
  examples: ['alerts retry 1987654321098765440'],
  asksService: true,
  run: async ({ args: { id } }, { client }) => {
    await client.call('retryDeadLetter', { parameters: { id } })
    return { value: { retried: { id } }, text: `Queued message ${id} for delivery.` }
  },
})

function alertTable(items: readonly Alert[]): string {
  const rows = items.map((alert) => [
    alert.id,
    alert.state,
    alert.rule,
    alert.scope === 'cluster' ? 'cluster' : alert.node,
    instantText(alert.firedAt),
    alert.acknowledgedBy ?? '-',
    instantText(alert.silencedUntil),
    alert.summary,
  ])
  return table(['id', 'state', 'rule', 'where', 'since', 'acknowledged', 'silenced until', 'summary'], rows)
}

export const alertCommands: readonly Command[] = [
  alertsListCommand,
  alertsAcknowledgeCommand,
  alertsSilenceCommand,
  alertsDeadLettersCommand,
  alertsRetryCommand,
]
