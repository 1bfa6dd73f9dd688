import type { CheckField, ParsedCheckRequest } from '@sluice/contract'
import { CHECK_PATH, checkAnswer, checkAnswerJson, legacyRateLimitHeaders, parseCheckRequest } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import type { Answer } from '../http/answer.ts'
import { jsonAnswer } from '../http/answer.ts'
import { problemAnswer } from '../http/problem-answer.ts'
import type { Route } from '../http/router.ts'
import type { Checker, Verdict } from './checker.ts'

const NEEDED = ['userId'] as const satisfies readonly CheckField[]
const MICROS_PER_MS = 1000

/**
 * `POST /internal/ratelimit/check`: 200 when the call may go on, 429 when not, both with a `CheckAnswer` and the rate limit
 * headers. What cannot be understood is answered with a problem, and counts nothing.
 */
export function checkRoute(checker: Checker, clock: Clock): Route {
  const tell = ({ decision, dimension }: Verdict): Answer => {
    const headers = legacyRateLimitHeaders(decision, clock.nowMicros() / MICROS_PER_MS)
    return jsonAnswer(decision.allowed ? 200 : 429, checkAnswerJson(checkAnswer(decision, dimension)), { headers })
  }
  const handle = (body: unknown): Answer | Promise<Answer> => {
    const parsed = parseCheckRequest(body, NEEDED)
    if (!parsed.ok) return refusal(parsed)
    const verdict = checker.check(parsed.request)
    return 'decision' in verdict ? tell(verdict) : verdict.then(tell)
  }
  return { path: CHECK_PATH, methods: { POST: { body: 'json', handle } } }
}

function refusal({ problems, unlisted }: Extract<ParsedCheckRequest, { ok: false }>): Answer {
  const count = problems.length + unlisted
  const places = problems.map(({ path }) => path || 'the body').join(', ')
  const more = unlisted === 0 ? '' : `, and ${unlisted} more that are not listed`
  return problemAnswer('SLUICE_HTTP_INVALID_REQUEST', {
    detail: `${count === 1 ? 'One thing is' : `${count} things are`} wrong: ${places}${more}. Nothing was counted.`,
    errors: problems,
  })
}
