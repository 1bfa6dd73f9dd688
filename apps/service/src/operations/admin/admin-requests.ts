import type { Page, Seen } from '@sluice/config-store'
import { etagOf, expectedRevision } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { Answer, OperationRequest } from '../handler.ts'
import { jsonAnswer } from '../handler.ts'
import type { ProblemError } from '../problems.ts'
import { invalidRequest, problemError } from '../problems.ts'

/** A parameter that must be there. */
export function textOf(query: URLSearchParams, name: string): string {
  const value = query.get(name)
  if (value !== null && value !== '') return value
  throw invalidRequest({ path: `?${name}`, received: value === null ? 'missing' : 'empty', expected: 'a text' })
}

/** The parameters of these names that are there. */
export function textsOf<N extends string>(query: URLSearchParams, names: readonly N[]): { readonly [K in N]?: string } {
  const found = names.flatMap((name) => {
    const value = query.get(name)
    return value === null ? [] : [[name, value]]
  })
  return Object.fromEntries(found)
}

/** A parameter that is a whole number, 0 or more; undefined when it is not there. */
export function numberOf(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name)
  return value === null ? undefined : wholeNumber(value, `?${name}`)
}

/** A text as a whole number, 0 or more. `path`: where it stands. */
export function wholeNumber(text: string, path: string): number {
  const number = Number(text)
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(number)) return number
  throw invalidRequest({ path, received: JSON.stringify(text.slice(0, 40)), expected: 'a whole number, 0 or more' })
}

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
export function rejectUnexpected(expected: Expected | undefined, isThere: boolean): void {
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
function missing(): ProblemError {
  return changedMeanwhile('nothing is there')
}

/** The answer where something else is there than the editor has seen. `what`: what is there. */
export function changedMeanwhile(what: string): ProblemError {
  const action = 'Read it again, and repeat the change with the new ETag if it still applies.'
  return problemError(
    'SLUICE_HTTP_PRECONDITION_FAILED',
    `What If-Match or If-None-Match asks for does not hold: ${what}. ${action}`,
  )
}

/** When something ends that a request asks for. */
export interface Expiry {
  /** Where in the body it stands. */
  readonly path: string
  /** Milliseconds since 1970; undefined when it does not end by itself. */
  readonly at: number | undefined
}

/** Refuses what would have ended before it begins: nobody means that, and mostly it is an instant in seconds. */
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

/** An answer with this value as JSON. What the admin API says is for who asked, and of now: nobody keeps it. */
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
