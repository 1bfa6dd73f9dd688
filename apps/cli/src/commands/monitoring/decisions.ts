import type { DecisionRecord } from '@sluice/contract'
import type { Command } from '../../command-line/command.ts'
import { choice, command, flag, needed } from '../../command-line/command.ts'
import { present } from '../../command-line/shared-flags.ts'
import { durationText, instantText, table } from '../../output/text.ts'
import { explanationText } from '../check.ts'

const DEFAULT_COUNT = 50
const MOST_IN_PAGE = 1000

const decisionsListCommand: Command = command({
  name: 'decisions list',
  summary: 'List recent decisions',
  description:
    'A sample of the last 15 minutes, newest first. Of every 10 seconds each thread keeps 36 denied and 12 allowed ' +
    'ones; other nodes share their newest 256. API keys are shown as digests. With --json: items.',
  args: {},
  flags: {
    outcome: choice(['allowed', 'denied'], 'Only these.'),
    resource: flag('text', '<resource>', 'Only calls of this resource.'),
    rule: flag('text', '<rule>', 'Only those that this rule decided.'),
    dimension: flag('text', '<dimension>', 'Only those counted by this dimension.'),
    caller: flag('text', '<caller>', 'Only those of this caller: its name, or the digest of its API key.'),
    node: flag('text', '<node>', 'Only those of this node, by name or id.'),
    since: flag('instant', '<when>', 'Only those since then.'),
    count: flag('whole', '<count>', `Maximum number of decisions. Default: ${DEFAULT_COUNT}.`),
  },
  examples: ['decisions list --outcome denied', 'decisions list --caller user-123 --count 5 --json'],
  asksService: true,
  run: async ({ flags }, { client }) => {
    const { outcome, resource, rule, dimension, caller, node, since: from, count = DEFAULT_COUNT } = flags
    const limit = Math.max(1, Math.min(count, MOST_IN_PAGE))
    const parameters = { limit, ...present({ outcome, resource, rule, dimension, caller, node, from }) }
    const items: DecisionRecord[] = []
    if (count > 0) {
      for await (const record of client.items('listDecisions', { parameters })) {
        if (items.push(record) >= count) break
      }
    }
    const titles = ['id', 'when', 'outcome', 'call', 'counted', 'rule', 'remaining', 'retry after']
    return { value: { items }, text: table(titles, items.map(decisionCells)) }
  },
})

function decisionCells(record: DecisionRecord): readonly string[] {
  const { method, resource, dimension, caller, remaining, limit, retryAfterMs } = record
  return [
    record.id,
    instantText(record.at),
    record.allowed ? 'allowed' : `denied: ${record.reason ?? 'limit'}`,
    method === undefined ? resource : `${method} ${resource}`,
    caller === undefined ? dimension || '-' : `${dimension}:${caller}`,
    record.rule ?? '-',
    limit === undefined ? '-' : `${remaining ?? 'unknown'} of ${limit}`,
    retryAfterMs === undefined ? '-' : durationText(retryAfterMs),
  ]
}

const decisionsExplainCommand: Command = command({
  name: 'decisions explain',
  summary: 'Explain a recent decision',
  description:
    'Evaluates the call of the decision again by the rules and counters of now, and consumes nothing. With --json: ' +
    'decision, explanation, and unknown, the fields that only the node that decided knows.',
  args: { id: needed('Id of the decision in "sluice decisions list".') },
  flags: {},
  examples: ['decisions explain 1987654321098765432'],
  asksService: true,
  run: async ({ args: { id } }, { client }) => {
    const value = await client.call('explainDecision', { parameters: { id } })
    const { decision, explanation, unknown } = value
    const outcome = decision.allowed ? 'allowed' : `denied (${decision.reason ?? 'limit'})`
    const then = `It was ${outcome} at ${instantText(decision.at)}. The same call now:`
    const without = unknown.length === 0 ? [] : [`Not known on this node, and left out: ${unknown.join(', ')}.`]
    return { value, text: [then, ...without, explanationText(explanation)].join('\n') }
  },
})

export const decisionCommands: readonly Command[] = [decisionsListCommand, decisionsExplainCommand]
