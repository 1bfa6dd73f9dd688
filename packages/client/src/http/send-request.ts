import type { Operation } from '@sluice/contract'
import { PROBLEM_MEDIA_TYPE } from '@sluice/contract'
import type { NowMs, Sleep } from '@sluice/runtime/portable'
import { ClientError, problemError, reasonOf } from '../errors/client-error.ts'
import { Deadline } from './deadline.ts'
import type { StreamEvent } from './event-stream.ts'
import { EventStreamReader } from './event-stream.ts'
import { retryAfterMsOf } from './parse-retry-after.ts'

/** The service, and how to reach it. */
export interface ServiceConnection {
  /** Without a trailing slash. */
  readonly base: string
  readonly token: string | undefined
  readonly fetch: FetchFunction
  readonly sleep: Sleep
  readonly nowMs: NowMs
}

/** One request to an operation. */
export interface ServiceRequest {
  readonly operation: Operation
  readonly parameters: ParameterValues
  /** JSON; undefined for none. */
  readonly body: string | undefined
  /** The value of `If-Match`; undefined for none. */
  readonly ifMatch: string | undefined
  /** Whether the service may process it twice without further effect. */
  readonly isIdempotent: boolean
}

/** Signal of the caller that ends a stream. */
export interface StreamTimeout {
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** Maximum silence on a stream. The service sends far more often. */
const LONGEST_SILENCE_MS = 30_000

/**
 * Sends a request once, and returns the body of its answer: parsed JSON, a string, or undefined without one. Rejects
 * with the reason of `signal` if that aborts, else with a `ClientError`.
 */
export async function sendRequest(
  address: ServiceConnection,
  request: ServiceRequest,
  signal: AbortSignal,
): Promise<unknown> {
  try {
    const response = await send(address, request, signal)
    const text = await response.text()
    return answerOf(request.operation, { response, text, nowMs: address.nowMs() })
  } catch (error) {
    throw failureOf(error, address, signal)
  }
}

/** Sends a request for a stream of events, and returns these until the service or the reader ends it. */
export async function* openStream(
  address: ServiceConnection,
  request: ServiceRequest,
  { timeoutMs, signal }: StreamTimeout,
): AsyncGenerator<StreamEvent, void, void> {
  const deadline = new Deadline({ ...address, signal })
  deadline.renew(timeoutMs, `from ${address.base}`)
  try {
    const response = await send(address, request, deadline.signal)
    if (!mediaTypeOf(response).startsWith('text/event-stream') || response.body === null) {
      answerOf(request.operation, { response, text: await response.text(), nowMs: address.nowMs() })
      throw unexpected(response, 'no stream of events', address.nowMs())
    }
    const reader = new EventStreamReader()
    const decoder = new TextDecoder()
    deadline.renew(LONGEST_SILENCE_MS, 'on a stream')
    for await (const bytes of response.body as ReadableStream<Uint8Array>) {
      // The time that the reader takes for an event does not count.
      deadline.pause()
      yield* reader.push(decoder.decode(bytes, { stream: true }))
      deadline.renew(LONGEST_SILENCE_MS, 'on a stream')
    }
  } catch (error) {
    throw failureOf(error, address, deadline.signal)
  } finally {
    deadline.end()
  }
}

async function send(address: ServiceConnection, request: ServiceRequest, signal: AbortSignal): Promise<Response> {
  const { operation, parameters, body, ifMatch } = request
  return await address.fetch(operationUrl(address.base, operation, parameters), {
    method: operation.method,
    headers: {
      Accept: acceptOf(operation),
      ...(address.token === undefined ? {} : { Authorization: `Bearer ${address.token}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(ifMatch === undefined ? {} : { 'If-Match': ifMatch }),
    },
    ...(body === undefined ? {} : { body }),
    // The service never redirects. Another server must not receive the API key.
    redirect: 'manual',
    signal,
  })
}

const accepted = new WeakMap<Operation, string>()

/** The media types of the answers of an operation, cached. */
function acceptOf(operation: Operation): string {
  const known = accepted.get(operation)
  if (known !== undefined) return known
  const types = Object.values(operation.answers).flatMap(({ schema, mediaType = 'application/json' }) =>
    schema === undefined ? [] : [mediaType],
  )
  const accept = [...new Set([...types, PROBLEM_MEDIA_TYPE])].join(', ')
  accepted.set(operation, accept)
  return accept
}

interface Received {
  readonly response: Response
  readonly text: string
  readonly nowMs: number
}

/** The body of a successful answer of the operation; otherwise throws its error. */
function answerOf({ answers }: Operation, { response, text, nowMs }: Received): unknown {
  const mediaType = mediaTypeOf(response)
  if (mediaType === PROBLEM_MEDIA_TYPE) {
    const error = problemError(parsed(text), retryAfterMsOf(response, nowMs))
    throw error ?? unexpected(response, 'an unknown problem', nowMs)
  }
  const declared = answers[response.status]
  if (declared === undefined) throw unexpected(response, mediaType || 'nothing', nowMs)
  if (declared.schema === undefined) return undefined
  const expected = (declared.mediaType ?? 'application/json').split(';')[0]!
  if (mediaType !== expected) throw unexpected(response, mediaType || 'nothing', nowMs)
  if (expected !== 'application/json') return text
  const value = parsed(text)
  if (value === undefined) throw unexpected(response, 'what is not JSON', nowMs)
  return value
}

function mediaTypeOf(response: Response): string {
  return (response.headers.get('content-type') ?? '').split(';')[0]!.trim().toLowerCase()
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function unexpected(response: Response, content: string, nowMs: number): ClientError {
  const { status } = response
  const detail =
    `It has status ${status} and ${content}. Check that the URL is that of the service, and which ` +
    'proxies are in between.'
  const retryAfterMs = retryAfterMsOf(response, nowMs)
  return new ClientError('SLUICE_CLIENT_UNEXPECTED_ANSWER', { status, detail, retryAfterMs })
}

const TRUST = 'Use a name that its certificate has. In Node, NODE_EXTRA_CA_CERTS=<PEM file> adds an issuer to trust.'

/** The error for a failed request. */
function failureOf(error: unknown, { base }: ServiceConnection, signal: AbortSignal): unknown {
  // The caller that aborted it knows why.
  if (signal.aborted) return signal.reason
  if (error instanceof ClientError) return error
  const reason = reasonOf(error)
  const advice = /certificate/i.test(reason) ? TRUST : 'Check that the service runs and that the URL is right.'
  const detail = `${base} does not answer: ${reason}. ${advice}`
  return new ClientError('SLUICE_CLIENT_UNREACHABLE', { detail, cause: error })
}

/** Parameters of path and query by name; undefined ones are omitted. */
export type ParameterValues = Readonly<Record<string, string | number | undefined>>

/** URL of an operation: its path and query below `base`, which has no trailing slash. */
function operationUrl(base: string, operation: Operation, parameters: ParameterValues): string {
  const { path, parameters: declared } = operation
  const query: [string, string][] = []
  for (const [name, value] of Object.entries(parameters)) {
    const place = Object.hasOwn(declared, name) ? declared[name]?.in : undefined
    if (place === undefined) throw unusable(operation, `the parameter "${name}"`, declaredNames(operation))
    if (value !== undefined && typeof value !== 'string' && typeof value !== 'number') {
      throw unusable(
        operation,
        `"${name}" as ${Array.isArray(value) ? 'a list' : `a value of type ${typeof value}`}`,
        'a string or a number',
      )
    }
    if (place === 'query' && value !== undefined) query.push([name, String(value)])
  }
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => pathSegment(operation, name, parameters[name]))
  return query.length === 0 ? base + filled : `${base}${filled}?${new URLSearchParams(query)}`
}

function pathSegment(operation: Operation, name: string, value: string | number | undefined): string {
  const text = value === undefined ? '' : String(value)
  // URLs interpret these as parent directories, even if they are escaped.
  if (text !== '' && text !== '.' && text !== '..') return encodeURIComponent(text)
  throw unusable(operation, text === '' ? `no "${name}"` : `"${name}" as "${text}"`, `"${name}" for ${operation.path}`)
}

function declaredNames({ id, parameters }: Operation): string {
  const names = Object.keys(parameters)
  return names.length === 0 ? `none: "${id}" has no parameters` : `only ${names.join(', ')}`
}

function unusable({ id }: Operation, received: string, expected: string): ClientError {
  return new ClientError('SLUICE_CLIENT_INVALID_OPTION', {
    detail: `A call of "${id}" got ${received}; expected ${expected}. Nothing was sent.`,
  })
}

/** The platform's `fetch`, or a compatible function. */
export type FetchFunction = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/** `fetch` of the platform, looked up when it is called. */
export const platformFetch: FetchFunction = (input, init) => fetch(input, init)
