import type { Explanation, RuleExplanation } from '@sluice/contract'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { facts, instantText } from '../output/table.ts'
import { CHECK_FLAGS, checkOf } from '../parsing/caller-flags.ts'
import { needed } from '../parsing/positional.ts'
import { answerText, decorateAnswer } from './answer-text.ts'
import { countText } from './counter-rows.ts'

/** Explains a decision. */
export const explainCommand: Command = command({
  name: 'explain',
  summary: 'Explain a decision',
  description:
    'Lists every rule that was considered for a call, why it applies or not, where its limit comes from, its counters, and what a check would answer. Consumes nothing.',
  args: { resource: needed('What is called.') },
  flags: CHECK_FLAGS,
  examples: ['explain /api/v1/data --user user-123 --method POST'],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const value = await client.call('explain', { body: checkOf(args.resource, flags) })
    return { value, text: explanationText(value), decorate: decorateAnswer }
  },
})

function explanationText(explanation: Explanation): string {
  const { denied, block, exemption, tier, readings, rules, decision } = explanation
  const circumstances = facts([
    ['version', explanation.version],
    ['read as', readings.join(' or ')],
    ['deny list', denied],
    ['block', block && `until ${instantText(block.until)}${block.reason === undefined ? '' : `: ${block.reason}`}`],
    ['exemption', exemption],
    ['tier', tier && `${tier.name}, from ${tier.from}`],
  ])
  return [circumstances, '', ...rules.map(ruleText), '', answerText(decision)].join('\n')
}

function ruleText({ rule, fate, why, entity, steps, counters }: RuleExplanation): string {
  const who = entity === undefined ? '' : ` for ${entity}`
  const limits = steps.map(({ source, change, limit }) => `    ${source}: ${change} -> ${limit}`)
  const used = counters.map(
    ({ used: units, limit, resetAt }) => `    used ${countText(units)} of ${limit}, resets at ${resetAt ?? '-'}`,
  )
  return [`${fate.padEnd(8)}  ${rule}${who}: ${why}`, ...limits, ...used].join('\n')
}
