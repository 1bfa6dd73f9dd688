import type { CheckAnswer } from '@sluice/contract'
import { facts } from '../output/table.ts'
import type { Paint } from '../output/terminal.ts'

const REASONS: Readonly<Record<CheckAnswer['reason'], string>> = {
  allowed: 'allowed',
  exempt: 'allowed: an exemption applies',
  unlimited: 'allowed: no rule applies',
  limit: 'denied: the limit is used up',
  never: 'denied: more tokens than the limit ever has',
  blocked: 'denied: the caller is blocked',
  denied: 'denied: the request is on the deny list',
  unavailable: 'denied: the store of the counters is unavailable',
}

/** The answer to a check, for people. */
export function answerText(answer: CheckAnswer): string {
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

/** Colours what became of the call: green, red, and yellow for an answer by failure mode. */
export function decorateAnswer(text: string, paint: Paint): string {
  return text
    .replace(/^(result +)(allowed.*)$/m, (_, name: string, result: string) => name + paint.green(result))
    .replace(/^(result +)(denied.*)$/m, (_, name: string, result: string) => name + paint.red(result))
    .replace(/^(without store +)(.*)$/m, (_, name: string, result: string) => name + paint.yellow(result))
}
