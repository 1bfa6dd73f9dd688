import type { Timers } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { can } from '@sluice/core/options'
import { nodeResponseFrom } from './fetch-server.ts'

/** Watches for the completion of one response. */
export interface ResponseWatch {
  /** The handler answered. Send the returned response: it is the same and reports its completion. */
  answered(response: Response): Response
  /** The handler threw: its caller answers with 500. */
  failed(): void
}

/**
 * Calls `finish` once: with the response status when the body was read or cancelled, or with 0 when the connection
 * closed before a response. `server` is the argument after the request. On Node the response is not changed; elsewhere
 * its body is passed through as it is read.
 */
export function watchResponse(request: Request, server: unknown, finish: (status: number) => void): ResponseWatch {
  return watchNodeResponse(server, finish) ?? watchBody(request, finish)
}

function watchNodeResponse(server: unknown, finish: (status: number) => void): ResponseWatch | undefined {
  const answer = nodeResponseFrom(server)
  if (answer === undefined) return undefined
  const end = (): void => finish(answer.headersSent ? answer.statusCode : 0)
  if (answer.closed === true || answer.destroyed === true) end()
  else answer.once('close', end)
  return { answered: (response) => response, failed: () => undefined }
}

function watchBody(request: Request, finish: (status: number) => void): ResponseWatch {
  // Older runtimes have none.
  const signal: AbortSignal | undefined = request.signal
  let status = 0
  let isOver = false
  const end = (): void => {
    if (isOver) return
    isOver = true
    signal?.removeEventListener('abort', end)
    finish(status)
  }
  if (signal?.aborted === true) end()
  else signal?.addEventListener('abort', end)
  return {
    answered(response) {
      status = response.status
      if (!isOver && willBeRead(request, response)) return new Response(endingWith(response.body, end), response)
      end()
      return response
    },
    failed() {
      status = 500
      end()
    },
  }
}

/** The body of a HEAD response, or one that is already being read, is not read through this wrapper. */
function willBeRead(request: Request, response: Response): response is Response & { body: ReadableStream<Uint8Array> } {
  return request.method !== 'HEAD' && response.body !== null && !response.body.locked
}

/** `body` with a call of `end` when reading stops. Does not read ahead. */
function endingWith(body: ReadableStream<Uint8Array>, end: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
          end()
          controller.close()
        } catch (error) {
          end()
          controller.error(error)
        }
      },
      cancel(reason) {
        end()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** Waits `delayMs`. False if the client disconnected before. */
export function waitForDelay(request: Request, delayMs: number, timers: Timers): Promise<boolean> {
  // Older runtimes have none.
  const signal: AbortSignal | undefined = request.signal
  if (signal?.aborted === true) return Promise.resolve(false)
  return new Promise((resolve) => {
    const leave = (): void => {
      cancel()
      resolve(false)
    }
    const cancel = timers.schedule(delayMs, () => {
      signal?.removeEventListener('abort', leave)
      resolve(true)
    })
    signal?.addEventListener('abort', leave, { once: true })
  })
}

/** Response for a disconnected client, which is never sent. Servers log 499 for such requests. */
export function clientDisconnected(): Response {
  return new Response(null, { status: 499 })
}

/** Checks that a handler returned a response. `from` names the handler in messages. */
export function checkResponse(response: unknown, from: string): Response {
  // The headers are not read: some runtimes create them on first access.
  if (can(response, 'clone')) return response as Response
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `what ${from} answered cannot be used`,
    received: response,
    expected: 'a Response',
    action: response === undefined ? 'Return one.' : 'Make one of it, such as Response.json(value).',
  })
}
