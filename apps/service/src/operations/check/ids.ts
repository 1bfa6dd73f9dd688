import { MOST_IDS } from '@sluice/contract'
import type { RuntimeErrorCode } from '@sluice/runtime'
import { isRuntimeError } from '@sluice/runtime'
import type { ServiceContext } from '../../service-context.ts'
import type { Answer, OperationHandlers } from '../handler.ts'
import { jsonAnswer } from '../handler.ts'
import { problemAnswer } from '../problems.ts'

/** What is wrong with a clock that no ids can be made from. */
const CLOCK_CODES = [
  'SLUICE_RUNTIME_CLOCK_BACKWARDS',
  'SLUICE_RUNTIME_CLOCK_STALLED',
  'SLUICE_RUNTIME_CLOCK_OUT_OF_RANGE',
] as const satisfies readonly RuntimeErrorCode[]

/** `GET /v1/ids`: unique ids, rising. `count` of them, 1 to {@link MOST_IDS}; one when that is left out. */
export function idHandlers({ nextId }: Pick<ServiceContext, 'nextId'>): OperationHandlers {
  return {
    'GET /v1/ids': ({ query }) => {
      const counts = query.getAll('count')
      const count = counts.length === 0 ? 1 : wholeNumber(counts[0]!)
      if (counts.length > 1 || count < 1 || count > MOST_IDS) return wrongCount(counts)
      try {
        const ids = Array.from({ length: count }, () => nextId())
        return ids.includes(undefined) ? NO_NUMBER : idsAnswer(ids)
      } catch (error) {
        if (CLOCK_CODES.some((code) => isRuntimeError(error, code))) return NO_TIME
        throw error
      }
    },
  }
}

/** The number that is written in decimal digits; 0 for anything else. */
function wholeNumber(text: string): number {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0
}

function idsAnswer(ids: readonly (string | undefined)[]): Answer {
  return jsonAnswer(200, JSON.stringify({ ids }), { headers: { 'Cache-Control': 'no-store' } })
}

function wrongCount(counts: readonly string[]): Answer {
  const received = counts.length > 1 ? `${counts.length} values` : JSON.stringify(counts[0]!.slice(0, 64))
  return problemAnswer('SLUICE_HTTP_INVALID_REQUEST', {
    detail: 'One thing is wrong: ?count.',
    errors: [{ path: '?count', received, expected: `a whole number from 1 to ${MOST_IDS}` }],
  })
}

/** Time is what makes ids unique: without it there are none. */
const NO_TIME = problemAnswer('SLUICE_HTTP_NOT_READY', {
  detail:
    'The clock of this node is wrong: it was set back, or stands still. Ask another node, or this one when it has caught up.',
  headers: { 'Retry-After': '1' },
})

const NO_NUMBER = problemAnswer('SLUICE_HTTP_NOT_READY', {
  detail: 'This node has no number of its own yet to make unique ids from. Ask another node, or this one later.',
  headers: { 'Retry-After': '1' },
})
