import type { Seen } from '@sluice/config-store'
import { expectedRevision } from '@sluice/contract'
import { isSluiceError } from '@sluice/core'
import type { OperationRequest } from '../http/operation-handler.ts'
import type { Refusal } from './refusal.ts'
import { refusal } from './refusal.ts'

/** What `If-Match` of a request says: a revision, that something must be there, or nothing at all. */
export function expectedOf({ headers }: OperationRequest): number | 'any' | undefined {
  const ifMatch = headers['if-match']
  if (ifMatch === undefined) return undefined
  const expected = expectedRevision(ifMatch)
  if (expected === 'unknown') throw changedMeanwhile('If-Match has no ETag that this service gave')
  return expected
}

/** What the editor has seen. `current`: the revision of what is there; undefined when nothing is. */
export async function seenBy(request: OperationRequest, current: () => Promise<number | undefined>): Promise<Seen> {
  const expected = expectedOf(request)
  if (expected === undefined) return {}
  if (expected !== 'any') return { ifRevision: expected }
  const revision = await current()
  if (revision === undefined) throw missing()
  return { ifRevision: revision }
}

/**
 * Does something for which `If-Match` stands in the way when it does not hold: a conflict is 412 for a request that has one, and
 * 409 for others.
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
export function missing(): Refusal {
  return changedMeanwhile('nothing is there')
}

/** The answer where something else is there than the editor has seen. `what`: what is there. */
export function changedMeanwhile(what: string): Refusal {
  const action = 'Read it again, and repeat the change with the new ETag if it still applies.'
  return refusal('SLUICE_HTTP_PRECONDITION_FAILED', `What If-Match asks for does not hold: ${what}. ${action}`)
}
