import type { Timers } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { can } from '@sluice/core/options'
import { nodeResponseFrom } from './fetch-server.ts'

/** Waits for the end of the answer to one request. */
export interface ResponseWatch {
  /** The handler answered. Send what this returns in place of `response`: it is the same, and tells when it has left. */
  answered(response: Response): Response
  /** The handler threw: whoever called it answers with 500. */
  failed(): void
}

/**
 * Calls `finish` once, with the status of the answer, when its body has been read to the end or was cancelled; with 0 when the
 * connection closed before there was one. `server` is what the server handed to the handler beside the request: behind Node's
 * http module the answer is not touched, elsewhere its body is passed on piece by piece, as it is read.
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

/** Nobody reads the body of an answer to HEAD, nor one that somebody else is reading. */
function willBeRead(request: Request, response: Response): response is Response & { body: ReadableStream<Uint8Array> } {
  return request.method !== 'HEAD' && response.body !== null && !response.body.locked
}

/** `body`, and a call of `end` when nobody will read it any further. Nothing is read ahead. */
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

/** Waits for the turn of a request: true when it has come, false when the client left before. */
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

/** Answers a client that has left: nobody will see it. 499 is what others log for such a request. */
export function clientDisconnected(): Response {
  return new Response(null, { status: 499 })
}

/** `response`, when it is one: whoever answers may have forgotten to. `from` is how that is called in messages. */
export function checkResponse(response: unknown, from: string): Response {
  // No look at its headers, which some runtimes make only when they are asked for.
  if (can(response, 'clone')) return response as Response
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `what ${from} answered cannot be used`,
    received: response,
    expected: 'a Response',
    action: response === undefined ? 'Return one.' : 'Make one of it, such as Response.json(value).',
  })
}
