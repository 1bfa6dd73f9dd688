import type { Call, Calls, OperationId } from '@sluice/contract'
import { ApiError, errorOf } from './api-error.ts'
import { noteReachable, serviceUrl } from './connection.ts'
import { OPERATION_ROUTES } from './operation-routes.ts'

/** What a call takes besides the parameters and the body of its operation. */
interface CallOptions {
  /** The revision that was read: the call fails with a conflict when it is another by now. */
  readonly ifMatch?: string | undefined
  readonly signal?: AbortSignal | undefined
}

type Given<C extends Call> = (object extends C['parameters']
  ? { readonly parameters?: C['parameters'] }
  : { readonly parameters: C['parameters'] }) &
  (C['body'] extends undefined ? object : { readonly body: C['body'] })

/** The input of a call: what its operation declares, and {@link CallOptions}. */
export type CallInput<Id extends OperationId> = Given<Calls[Id]> & CallOptions

/** The arguments of a call: the input may be left out where nothing in it is required. */
export type CallArguments<Id extends OperationId> =
  object extends Given<Calls[Id]> ? [input?: CallInput<Id>] : [input: CallInput<Id>]

/** An answer with its revision. */
export interface Answer<Id extends OperationId> {
  readonly body: Calls[Id]['answer']
  /** For `ifMatch` of a later change; absent where the operation has no revisions. */
  readonly etag: string | undefined
}

interface LooseInput extends CallOptions {
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

let csrfToken = ''
let onSignedOut: () => void = () => undefined

/** Sets the token that proves that a change comes from this page. The session has it. */
export function setCsrfToken(token: string): void {
  csrfToken = token
}

/** Sets what happens when the service no longer knows the session. */
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener
}

/** Calls an operation. Rejects with an {@link ApiError}. */
export async function call<Id extends OperationId>(id: Id, ...input: CallArguments<Id>): Promise<Calls[Id]['answer']> {
  return (await callWithEtag(id, ...input)).body
}

/** Calls an operation and keeps the revision of what it answers. */
export async function callWithEtag<Id extends OperationId>(id: Id, ...[input]: CallArguments<Id>): Promise<Answer<Id>> {
  const response = await send(id, (input ?? {}) as LooseInput)
  const isJson = response.headers.get('content-type')?.includes('json') ?? false
  const body = isJson ? await response.json() : undefined
  return { body: body as Calls[Id]['answer'], etag: response.headers.get('etag') ?? undefined }
}

/** Sends a request to an operation; answers below 400 only. */
export async function send(id: OperationId, input: LooseInput): Promise<Response> {
  const { method } = OPERATION_ROUTES[id]
  const headers = new Headers({ accept: 'application/json' })
  if (input.body !== undefined) headers.set('content-type', 'application/json')
  if (input.ifMatch !== undefined) headers.set('if-match', input.ifMatch)
  if (method !== 'GET' && csrfToken !== '') headers.set('x-csrf-token', csrfToken)
  const response = await fetched(urlOf(id, input.parameters ?? {}), {
    method,
    headers,
    body: input.body === undefined ? null : JSON.stringify(input.body),
    credentials: 'same-origin',
    cache: 'no-store',
    signal: input.signal ?? null,
  })
  if (response.ok) return response
  const error = await errorOf(response)
  if (error.problem?.code === 'SLUICE_HTTP_UNAUTHORIZED') onSignedOut()
  throw error
}

async function fetched(url: URL, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, init)
    noteReachable(true)
    return response
  } catch (cause) {
    if (init.signal?.aborted) throw cause
    noteReachable(false)
    throw offline(url, cause)
  }
}

function offline(url: URL, cause: unknown): ApiError {
  const message = `No answer from ${url.origin}. Check that the service runs and that this machine has a network.`
  return new ApiError('offline', 0, { message, cause })
}

/** The URL of an operation with the parameters of path and query filled in; those that are undefined are left out. */
export function urlOf(id: OperationId, parameters: Readonly<Record<string, unknown>>): URL {
  const names = new Set<string>()
  const path = OPERATION_ROUTES[id].path.replace(/\{(\w+)\}/g, (_, name: string) => {
    names.add(name)
    return encodeURIComponent(String(parameters[name]))
  })
  const url = serviceUrl(path)
  for (const [name, value] of Object.entries(parameters)) {
    if (!names.has(name) && value !== undefined) url.searchParams.set(name, String(value))
  }
  return url
}
