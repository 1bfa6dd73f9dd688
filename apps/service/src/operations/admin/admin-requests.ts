import type { Author, Page, Seen } from '@sluice/config-store'
import { etagOf } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { Answer, AnyRequest, RequestContext } from '../handler.ts'
import { jsonAnswer } from '../handler.ts'
import type { ProblemError } from '../problems.ts'
import { changedMeanwhile, invalidRequest } from '../problems.ts'

/** Who asks for a change, and why, as the audit log has it. */
export function authorOf({ principal, body }: AnyRequest): Author {
  // The table of operations requires a role for every change, so every change has an author.
  if (principal === undefined) throw new Error('a change was asked for without an API key')
  const note = typeof body === 'object' && body !== null && 'note' in body ? body.note : undefined
  return { name: principal.name, keyId: principal.id, ...(typeof note === 'string' ? { note } : {}) }
}

/** What the editor has seen. `current`: the revision of what is there; undefined when nothing is. */
export async function seenBy(
  { precondition }: RequestContext,
  current: () => Promise<number | undefined>,
): Promise<Seen> {
  if (precondition === undefined) return {}
  if (precondition === 'none') return { ifRevision: 0 }
  if (precondition !== 'any') return { ifRevision: precondition }
  const revision = await current()
  if (revision === undefined) throw missing()
  return { ifRevision: revision }
}

/** Rejects a change of something that must be there and is not, or the other way round. */
export function rejectUnexpected({ precondition }: RequestContext, isThere: boolean): void {
  if (precondition === 'any' && !isThere) throw missing()
  if (precondition === 'none' && isThere) throw changedMeanwhile('something is there already')
}

/**
 * Does something for which `If-Match` or `If-None-Match` stands in the way when it does not hold: a conflict is 412 for
 * a request that has one, and 409 for others.
 */
export async function underPrecondition<T>({ precondition }: RequestContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (precondition === undefined || !isSluiceError(error, 'SLUICE_CONFLICT')) throw error
    throw changedMeanwhile(error.expected === undefined ? 'something else is there' : `now it is ${error.expected}`)
  }
}

/** The answer where `If-Match: *` asks for something that is not there. */
function missing(): ProblemError {
  return changedMeanwhile('nothing is there')
}

/** When something ends that a request asks for. */
export interface Expiry {
  /** Where in the body it stands. */
  readonly path: string
  /** Milliseconds since 1970; undefined when it does not end by itself. */
  readonly at: number | undefined
}

/** Rejects an expiry in the past: usually an instant in seconds instead of milliseconds. */
export function rejectEnded(clock: Clock, expiries: readonly Expiry[]): void {
  const nowMs = clock.nowMicros() / MICROS_PER_MS
  const ended = expiries.filter(({ at }) => at !== undefined && at <= nowMs)
  if (ended.length === 0) return
  throw invalidRequest(
    ...ended.map(({ path, at }) => ({
      path,
      received: `${at}, which is ${new Date(at!).toISOString()}`,
      expected: 'an instant in the future, in milliseconds since 1970',
    })),
  )
}

/** What an answer says besides its value. */
export interface AdminAnswerOptions {
  /** Default: 200. */
  readonly status?: number
  /** Revision for the `ETag` header. Default: no `ETag`. */
  readonly revision?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** An answer with this value as JSON. Not cacheable: it depends on the caller and on the instant. */
export function adminAnswer(value: unknown, options: AdminAnswerOptions = {}): Answer {
  return jsonAnswer(options.status ?? 200, JSON.stringify(value), { headers: headersOf(options) })
}

/** The answer to a removal. */
export function removedAnswer(options: Pick<AdminAnswerOptions, 'revision'> = {}): Answer {
  return { status: 204, headers: headersOf(options), body: '' }
}

/** A page, without `next` on the last one. */
export function pageAnswer<T>({ items, next }: Page<T>, more: { readonly version?: number } = {}): Answer {
  const { version } = more
  return adminAnswer({ items, next, version }, version === undefined ? {} : { revision: version })
}

function headersOf({ revision, headers }: AdminAnswerOptions): Record<string, string> {
  return {
    'Cache-Control': 'no-store',
    ...(revision === undefined ? {} : { ETag: etagOf(revision) }),
    ...headers,
  }
}
