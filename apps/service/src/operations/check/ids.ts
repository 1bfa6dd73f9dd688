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

/** Unique ids, rising. */
export function idHandlers({ nextId }: Pick<ServiceContext, 'nextId'>): OperationHandlers<'ids'> {
  return {
    ids: ({ parameters }) => {
      try {
        const ids = Array.from({ length: parameters.count }, () => nextId())
        return ids.includes(undefined) ? NO_NUMBER : idsAnswer(ids)
      } catch (error) {
        if (CLOCK_CODES.some((code) => isRuntimeError(error, code))) return NO_TIME
        throw error
      }
    },
  }
}

function idsAnswer(ids: readonly (string | undefined)[]): Answer {
  return jsonAnswer(200, JSON.stringify({ ids }), { headers: { 'Cache-Control': 'no-store' } })
}

/** Time is what makes ids unique: without it there are none. */
const NO_TIME = problemAnswer('SLUICE_HTTP_NOT_READY', {
  detail:
    'The clock of this node is wrong: it was set back, or stands still. Ask another node, or this one when it has ' +
    'caught up.',
  headers: { 'Retry-After': '1' },
})

const NO_NUMBER = problemAnswer('SLUICE_HTTP_NOT_READY', {
  detail: 'This node has no number of its own yet to make unique ids from. Ask another node, or this one later.',
  headers: { 'Retry-After': '1' },
})
