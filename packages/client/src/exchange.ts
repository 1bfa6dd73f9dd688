import type { Operation } from '@sluice/contract'
import { PROBLEM_MEDIA_TYPE } from '@sluice/contract'
import type { NowMs, Sleep } from '@sluice/runtime/portable'
import { announcedWaitMs } from './announced-wait.ts'
import { ClientError, problemError, reasonOf } from './client-error.ts'
import { Deadline } from './deadline.ts'
import { EventStreamReader, type StreamEvent } from './event-stream.ts'
import type { FetchFunction } from './fetch-function.ts'
import { operationUrl, type ParameterValues } from './operation-url.ts'

/** Which service, and how it is asked. */
export interface ServiceAddress {
  /** Without a slash at its end. */
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
  /** Whether it changes nothing that it has not changed already when it is dealt with once more. */
  readonly isHarmlessTwice: boolean
}

/** How long a caller waits. */
export interface Patience {
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** How long a stream may be silent. The service sends something far more often. */
const LONGEST_SILENCE_MS = 30_000

/**
 * Sends a request, once, and gives the body of its answer: parsed JSON, a text, or undefined when there is none. Rejects with
 * the reason of `signal` when that aborts, else with a `ClientError`.
 */
export async function exchange(
  address: ServiceAddress,
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

/** Sends a request whose answer is a stream of events, and gives these until the service or the reader ends it. */
export async function* openStream(
  address: ServiceAddress,
  request: ServiceRequest,
  { timeoutMs, signal }: Patience,
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
      // What the reader does with an event takes as long as it takes.
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

async function send(address: ServiceAddress, request: ServiceRequest, signal: AbortSignal): Promise<Response> {
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
    // The service redirects nobody. Whoever does is not to get the key.
    redirect: 'manual',
    signal,
  })
}

const accepted = new WeakMap<Operation, string>()

/** The media types that an operation answers with; worked out once. */
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

/** What was answered, where that is one of the answers of the operation; else throws what it means. */
function answerOf({ answers }: Operation, { response, text, nowMs }: Received): unknown {
  const mediaType = mediaTypeOf(response)
  if (mediaType === PROBLEM_MEDIA_TYPE) {
    const error = problemError(parsed(text), announcedWaitMs(response, nowMs))
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
  const detail = `It has status ${status} and ${content}. Look whether the address is that of the service, and whether something stands in between.`
  const retryAfterMs = announcedWaitMs(response, nowMs)
  return new ClientError('SLUICE_CLIENT_UNEXPECTED_ANSWER', { status, detail, retryAfterMs })
}

/** What is thrown for a request that failed. */
function failureOf(error: unknown, { base }: ServiceAddress, signal: AbortSignal): unknown {
  // Whoever ended it has said why.
  if (signal.aborted) return signal.reason
  if (error instanceof ClientError) return error
  const detail = `${base} does not answer: ${reasonOf(error)}. Look whether the service runs and the address is right.`
  return new ClientError('SLUICE_CLIENT_UNREACHABLE', { detail, cause: error })
}
