import type { Alert } from '@sluice/contract'
import { needed, parseDuration } from '../command-line/arguments.ts'
import type { Command } from '../command-line/command.ts'
import { collected, command } from '../command-line/command.ts'
import { NOTE_FLAG, present } from '../command-line/shared-flags.ts'
import { usageError } from '../output/cli-error.ts'
import { instantText, quoted, table } from '../output/text.ts'

/** Lists alerts. */
export const alertsListCommand: Command = command({
  name: 'alerts list',
  summary: 'List alerts',
  description: 'Firing alerts first, then resolved ones, newest first. With --json: items.',
  args: {},
  flags: {},
  examples: ['alerts list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listAlerts', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: alertTable(items) }
  },
})

/** Acknowledges an alert. */
export const alertsAcknowledgeCommand: Command = command({
  name: 'alerts acknowledge',
  summary: 'Acknowledge an alert',
  description: 'No further messages are sent while it fires. With --json: the alert.',
  args: { id: needed('The alert.') },
  flags: { note: NOTE_FLAG },
  examples: ['alerts acknowledge 1987654321098765432 --note "load test"'],
  asksService: true,
  run: async ({ args: { id }, flags: { note } }, { client }) => {
    const value = await client.call('acknowledgeAlert', { parameters: { id }, body: present({ note }) })
    return { value, text: `Acknowledged alert ${id}.\n${alertTable([value])}` }
  },
})

/** Keeps an alert quiet for a time. */
export const alertsSilenceCommand: Command = command({
  name: 'alerts silence',
  summary: 'Silence an alert',
  description: 'It stays listed, and no messages are sent until the silence ends. With --json: the alert.',
  args: { id: needed('The alert.'), duration: needed('For how long, such as 15m or 1h30m.') },
  flags: { note: NOTE_FLAG },
  examples: ['alerts silence 1987654321098765432 2h --note "load test until noon"'],
  asksService: true,
  run: async ({ args: { id, duration }, flags: { note } }, { client }) => {
    if (parseDuration(duration) === undefined) {
      throw usageError(`${quoted(duration)} is no duration; expected one such as 15m or 1h30m.`)
    }
    const body = { duration, ...present({ note }) }
    const value = await client.call('silenceAlert', { parameters: { id }, body })
    return { value, text: `Silenced alert ${id} for ${duration}.\n${alertTable([value])}` }
  },
})

/** Lists messages that could not be delivered. */
export const alertsDeadLettersCommand: Command = command({
  name: 'alerts dead-letters',
  summary: 'List undelivered alert messages',
  description: 'Messages whose every delivery attempt failed, newest first. With --json: items.',
  args: {},
  flags: {},
  examples: ['alerts dead-letters'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listDeadLetters', { parameters: { limit: 1000 } }), context)
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

/** Tries to deliver a message again. */
export const alertsRetryCommand: Command = command({
  name: 'alerts retry',
  summary: 'Retry an undelivered message',
  description:
    'Sends it again with the same idempotency key. "sluice alerts dead-letters" lists it again if that fails.',
  args: { id: needed('The message, as the list of dead letters names it.') },
  flags: {},
  examples: ['alerts retry 1987654321098765440'],
  asksService: true,
  run: async ({ args: { id } }, { client }) => {
    await client.call('retryDeadLetter', { parameters: { id } })
    return { value: { retried: { id } }, text: `Queued message ${id} for delivery.` }
  },
})

/** Alerts, for people. */
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
