import type { Page } from '@sluice/config-store'
import { etagOf } from '@sluice/contract'
import type { Answer } from '../answer.ts'
import { jsonAnswer } from '../answer.ts'

/** What an answer says besides its value. */
export interface AdminAnswerOptions {
  /** 200 when left out. */
  readonly status?: number
  /** The revision that the `ETag` names; no `ETag` when left out. */
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
