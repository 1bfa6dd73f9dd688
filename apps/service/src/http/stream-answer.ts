import type { ServerResponse } from 'node:http'
import type { StreamAnswer } from './operation-handler.ts'

/**
 * Sends an answer that goes on until its source ends it, or the client is gone. The function returned ends it; `done` is
 * called once when it is over, whoever ended it.
 */
export function sendStream(response: ServerResponse, answer: StreamAnswer, done: () => void): () => void {
  response.writeHead(answer.status, answer.headers)
  // Otherwise a client learns that it is connected only with the first event.
  response.flushHeaders()
  let isOver = false
  let stop: (() => void) | undefined
  const finish = (): void => {
    if (isOver) return
    isOver = true
    stop?.()
    done()
  }
  const end = (): void => {
    finish()
    response.end()
  }
  response.once('close', finish)
  stop = answer.stream((text) => !isOver && response.write(text), end)
  // It may have ended before there was anything to stop.
  if (isOver) stop()
  return end
}
