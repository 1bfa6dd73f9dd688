import type { CheckAnswer, Explanation, RuleExplanation } from '@sluice/contract'
import type { Command } from '../command-line/command.ts'
import { command, needed, toggle } from '../command-line/command.ts'
import { CHECK_FLAGS, checkOf } from '../command-line/shared-flags.ts'
import { EXIT_CODES } from '../output/cli-error.ts'
import type { Paint } from '../output/terminal.ts'
import { facts, instantText } from '../output/text.ts'
import { countText } from './callers/usage.ts'

const checkCommand: Command = command({
  name: 'check',
  summary: 'Check a call against the limits',
  description:
    'Applies all rules that match the call, and consumes its tokens if all of them allow it. Exits with 0 if the ' +
    'call is allowed and with 3 if it is denied. With --json: the response of the check API.',
  args: { resource: needed('Resource: a path, a name, or *.') },
  flags: { ...CHECK_FLAGS, peek: toggle('Show the decision without consuming tokens.') },
  examples: ['check /api/v1/data --user user-123', 'check /login --ip 192.0.2.7 --peek'],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const request = checkOf(args.resource, flags)
    const answer = await (flags.peek ? client.peek(request) : client.check(request))
    return {
      value: answer,
      text: decisionText(answer),
      decorate: decorateDecision,
      exitCode: answer.allowed ? EXIT_CODES.ok : EXIT_CODES.denied,
    }
  },
})

const explainCommand: Command = command({
  name: 'explain',
  summary: 'Explain a decision',
  description:
    'Lists every rule for a call, why it applies or not, where its limit comes from, its counters, and the ' +
    'decision. Consumes nothing.',
  args: { resource: needed('Resource of the call.') },
  flags: CHECK_FLAGS,
  examples: ['explain /api/v1/data --user user-123 --method POST'],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const value = await client.call('explain', { body: checkOf(args.resource, flags) })
    return { value, text: explanationText(value), decorate: decorateDecision }
  },
})

/** An explanation for people. */
export function explanationText(explanation: Explanation): string {
  const { denied, block, exemption, tier, readings, rules, decision } = explanation
  const circumstances = facts([
    ['version', explanation.version],
    ['read as', readings.join(' or ')],
    ['deny list', denied],
    ['block', block && `until ${instantText(block.until)}${block.reason === undefined ? '' : `: ${block.reason}`}`],
    ['exemption', exemption],
    ['tier', tier && `${tier.name}, from ${tier.from}`],
  ])
  return [circumstances, '', ...rules.map(ruleText), '', decisionText(decision)].join('\n')
}

function ruleText({ rule, fate, why, entity, steps, counters }: RuleExplanation): string {
  const who = entity === undefined ? '' : ` for ${entity}`
  const limits = steps.map(({ source, change, limit }) => `    ${source}: ${change} -> ${limit}`)
  const used = counters.map(
    ({ used: units, limit, resetAt }) => `    used ${countText(units)} of ${limit}, resets at ${resetAt ?? '-'}`,
  )
  return [`${fate.padEnd(8)}  ${rule}${who}: ${why}`, ...limits, ...used].join('\n')
}

const REASONS: Readonly<Record<CheckAnswer['reason'], string>> = {
  allowed: 'allowed',
  exempt: 'allowed: an exemption applies',
  unlimited: 'allowed: no rule applies',
  limit: 'denied: the limit is used up',
  never: 'denied: more tokens than the limit ever has',
  blocked: 'denied: the caller is blocked',
  denied: 'denied: the request is on the deny list',
  unavailable: 'denied: the counter store is unavailable',
}

function decisionText(answer: CheckAnswer): string {
  const { reason, rule, dimension, limit, remaining, resetAt, retryAfter, delayMs, failure, decisionId, version } =
    answer
  return facts([
    ['result', REASONS[reason]],
    ['rule', rule === '' ? undefined : `${rule}${dimension === '' ? '' : ` (by ${dimension})`}`],
    ['limit', limit ?? undefined],
    ['remaining', limit === null ? undefined : (remaining ?? 'unknown')],
    ['resets at', resetAt ?? undefined],
    ['retry in', retryAfter === null ? undefined : `${retryAfter} s`],
    ['delay', delayMs === undefined ? undefined : `${delayMs} ms`],
    ['without store', failure === undefined ? undefined : `${failure.cause}, so ${failure.mode}`],
    ['decision', decisionId],
    ['version', version],
  ])
}

/** Green: allowed. Red: denied. Yellow: decided by the failure mode. */
function decorateDecision(text: string, paint: Paint): string {
  return text
    .replace(/^(result +)(allowed.*)$/m, (_, name: string, result: string) => name + paint.green(result))
    .replace(/^(result +)(denied.*)$/m, (_, name: string, result: string) => name + paint.red(result))
    .replace(/^(without store +)(.*)$/m, (_, name: string, result: string) => name + paint.yellow(result))
}

export const checkCommands: readonly Command[] = [checkCommand, explainCommand]
