import type { ServerResponse } from 'node:http'
import type { Sleep } from '@sluice/runtime'
import type { StreamAnswer } from '../../operations/handler.ts'
import { NO_SNIFF } from '../../operations/handler.ts'

/** How a stream is sent. */
export interface StreamOptions {
  readonly sleep: Sleep
  /** Called once when the stream has ended, by either side. */
  readonly done: () => void
}

/** How long a client has to read what is left when a stream was ended, in milliseconds; then its connection is cut. */
export const STREAM_GRACE_MS = 5000

/**
 * Sends an answer that goes on until its source ends it, or the client is gone. The function returned ends it. A client
 * that does not read what was sent holds the connection for no longer than {@link STREAM_GRACE_MS}.
 */
export function sendStream(response: ServerResponse, answer: StreamAnswer, { sleep, done }: StreamOptions): () => void {
  response.writeHead(answer.status, { ...answer.headers, ...NO_SNIFF })
  // Otherwise a client learns that it is connected only with the first event.
  response.flushHeaders()
  const closed = new AbortController()
  let isOver = false
  let isEnded = false
  let stop: (() => void) | undefined
  const finish = (): void => {
    if (isOver) return
    isOver = true
    stop?.()
    done()
  }
  const end = (): void => {
    finish()
    if (isEnded || closed.signal.aborted) return
    isEnded = true
    response.end()
    sleep(STREAM_GRACE_MS, closed.signal).then(
      () => response.destroy(),
      () => undefined,
    )
  }
  response.once('close', () => {
    closed.abort()
    finish()
  })
  stop = answer.stream((text) => !isOver && response.write(text), end)
  // It may have ended before there was anything to stop.
  if (isOver) stop()
  return end
}
