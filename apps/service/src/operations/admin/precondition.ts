import type { Seen } from '@sluice/config-store'
import { expectedRevision } from '@sluice/contract'
import { isSluiceError } from '@sluice/core'
import type { OperationRequest } from '../handler.ts'
import type { Refusal } from '../problems.ts'
import { refusal } from '../problems.ts'

/** What a change is made from: a revision, anything that is there (`any`), or nothing (`none`). */
export type Expected = number | 'any' | 'none'

/** What `If-Match` or `If-None-Match` of a request says; undefined when there is neither. */
export function expectedOf({ headers }: OperationRequest): Expected | undefined {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (ifNoneMatch !== undefined) {
    if (ifNoneMatch.trim() !== '*' || ifMatch !== undefined) {
      throw changedMeanwhile('If-None-Match is understood as "*" only, and not beside If-Match')
    }
    return 'none'
  }
  if (ifMatch === undefined) return undefined
  const expected = expectedRevision(ifMatch)
  if (expected === 'unknown') throw changedMeanwhile('If-Match has no ETag that this service gave')
  return expected
}

/** What the editor has seen. `current`: the revision of what is there; undefined when nothing is. */
export async function seenBy(request: OperationRequest, current: () => Promise<number | undefined>): Promise<Seen> {
  const expected = expectedOf(request)
  if (expected === undefined) return {}
  if (expected === 'none') return { ifRevision: 0 }
  if (expected !== 'any') return { ifRevision: expected }
  const revision = await current()
  if (revision === undefined) throw missing()
  return { ifRevision: revision }
}

/** Refuses a change of something that must be there and is not, or the other way round. */
export function refuseUnexpected(expected: Expected | undefined, isThere: boolean): void {
  if (expected === 'any' && !isThere) throw missing()
  if (expected === 'none' && isThere) throw changedMeanwhile('something is there already')
}

/**
 * Does something for which `If-Match` or `If-None-Match` stands in the way when it does not hold: a conflict is 412 for a
 * request that has one, and 409 for others.
 */
export async function underPrecondition<T>(request: OperationRequest, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (expectedOf(request) === undefined || !isSluiceError(error, 'SLUICE_CONFLICT')) throw error
    throw changedMeanwhile(error.expected === undefined ? 'something else is there' : `now it is ${error.expected}`)
  }
}

/** The answer where `If-Match: *` asks for something that is not there. */
function missing(): Refusal {
  return changedMeanwhile('nothing is there')
}

/** The answer where something else is there than the editor has seen. `what`: what is there. */
export function changedMeanwhile(what: string): Refusal {
  const action = 'Read it again, and repeat the change with the new ETag if it still applies.'
  return refusal(
    'SLUICE_HTTP_PRECONDITION_FAILED',
    `What If-Match or If-None-Match asks for does not hold: ${what}. ${action}`,
  )
}
