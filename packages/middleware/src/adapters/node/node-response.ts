import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import type { Timers } from '@sluice/core'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import type { Admission } from '../../http/request-outcome.ts'

/** A Node response of HTTP/1 or HTTP/2. */
export type NodeResponse = ServerResponse | Http2ServerResponse

/**
 * Reports the completion of an admitted request to the limiter, and waits its delay. True when the handler may run,
 * false if the connection closed before.
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

/** A remote store may answer after the client disconnected, when `close` was already emitted. */
function isClosed(answer: NodeResponse): boolean {
  return 'stream' in answer ? answer.stream.destroyed : answer.closed
}
