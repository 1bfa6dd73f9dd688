import type { ReadonlySignal } from '@preact/signals'
import { signal } from '@preact/signals'
import type { Calls, OperationId } from '@sluice/contract'
import { pause, random } from '../clock-and-timers.ts'
import { ApiError, isAborted } from './api-error.ts'
import { send } from './client.ts'
import { noteReachable, onNetworkBack } from './connection.ts'

const FIRST_RETRY_MS = 500
const LONGEST_RETRY_MS = 15_000

/** `connecting`: before the first event, or after a failure. `ended`: the session is over, or the stream was closed. */
export type StreamState = 'connecting' | 'live' | 'ended'

/** A stream that reconnects by itself. */
export interface EventStream {
  readonly state: ReadonlySignal<StreamState>
  close(): void
}

/** A stream to follow. */
export interface StreamRequest<Id extends OperationId> {
  readonly id: Id
  readonly parameters?: Calls[Id]['parameters']
  /** Receives the data of each event. */
  onEvent(data: Calls[Id]['answer']): void
}

/**
 * Follows a stream of server-sent events. After a failure it reconnects, after 0.5 s first and at most 15 s, with
 * jitter so that many pages do not return at the same instant; at once when the browser gets its network back.
 */
export function followStream<Id extends OperationId>(request: StreamRequest<Id>): EventStream {
  const state = signal<StreamState>('connecting')
  const closing = new AbortController()
  void follow(request, state, closing.signal)
  return {
    state,
    close: () => closing.abort(),
  }
}

async function follow<Id extends OperationId>(
  request: StreamRequest<Id>,
  state: { value: StreamState },
  closed: AbortSignal,
): Promise<void> {
  let failures = 0
  while (!closed.aborted) {
    try {
      const response = await send(request.id, { parameters: { ...request.parameters }, signal: closed })
      for await (const data of eventsOf(response.body)) {
        failures = 0
        state.value = 'live'
        request.onEvent(JSON.parse(data) as Calls[Id]['answer'])
      }
    } catch (error) {
      if (isAborted(error)) break
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) break
      noteReachable(false)
    }
    if (closed.aborted) break
    state.value = 'connecting'
    await retryPause(failures, closed)
    failures += 1
  }
  state.value = 'ended'
}

async function retryPause(failures: number, closed: AbortSignal): Promise<void> {
  const limitMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** failures)
  const networkBack = new AbortController()
  const stop = onNetworkBack(() => networkBack.abort())
  await pause(limitMs / 2 + (random() * limitMs) / 2, AbortSignal.any([closed, networkBack.signal]))
  stop()
}

/** The data of each event of a stream of server-sent events. Comments, which keep connections open, are left out. */
export async function* eventsOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
): AsyncGenerator<string, void, void> {
  if (body === null) return
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const events = (rest + value).split(/\r?\n\r?\n/)
      rest = events.pop() ?? ''
      for (const event of events) {
        const data = event
          .split(/\r?\n/)
          .filter((line) => line.startsWith('data:'))
          .map((line) => line.slice(5).trimStart())
        if (data.length > 0) yield data.join('\n')
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}
