import type { CheckAnswer } from '@sluice/contract'
import { facts } from '../output/table.ts'

const REASONS: Readonly<Record<CheckAnswer['reason'], string>> = {
  allowed: 'allowed',
  exempt: 'allowed: an exemption holds',
  unlimited: 'allowed: no rule applies',
  limit: 'refused: the limit is used up',
  never: 'refused: so many tokens never fit',
  blocked: 'refused: the caller is blocked',
  denied: 'refused: it is on the deny list',
  unavailable: 'refused: the store of the counters cannot be asked',
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
    ['come back in', retryAfter === null ? undefined : `${retryAfter} s`],
    ['wait', delayMs === undefined ? undefined : `${delayMs} ms`],
    ['without store', failure === undefined ? undefined : `${failure.cause}, so ${failure.mode}`],
    ['decision', decisionId],
    ['version', version],
  ])
}
