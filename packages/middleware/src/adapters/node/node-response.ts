import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import type { Timers } from '@sluice/core'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import type { Admission } from '../../http/outcome.ts'

/** The answer to a request on Node, by either version of the protocol. */
export type NodeResponse = ServerResponse | Http2ServerResponse

/**
 * Waits for the turn of an admitted request, which for most has come at once: true then. False when the connection closed
 * before, so that there is nobody to answer. In either case the limiter learns how the request ended.
 */
export function admitRequest(answer: NodeResponse, admission: Admission, timers: Timers): MaybePromise<boolean> {
  const { delayMs, finish } = admission
  const isGone = isClosed(answer)
  if (finish !== undefined) {
    const end = (): void => finish(answer.headersSent ? answer.statusCode : 0)
    if (isGone) end()
    else answer.once('close', end)
  }
  if (isGone) return false
  return delayMs > 0 ? waitFor(answer, delayMs, timers) : true
}

function waitFor(answer: NodeResponse, delayMs: number, timers: Timers): Promise<boolean> {
  return new Promise((resolve) => {
    const leave = (): void => {
      cancel()
      resolve(false)
    }
    const cancel = timers.schedule(delayMs, () => {
      answer.off('close', leave)
      resolve(true)
    })
    answer.once('close', leave)
  })
}

/** A store that was asked over the network may answer after the client has left; `close` has been emitted then. */
function isClosed(answer: NodeResponse): boolean {
  return 'stream' in answer ? answer.stream.destroyed : answer.closed
}
