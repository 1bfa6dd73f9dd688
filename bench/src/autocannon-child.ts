import { text } from 'node:stream/consumers'
import autocannon from 'autocannon'

// Sends requests over a bounded number of connections, as fast as they are answered or at a constant rate, and prints
// what was reached. At a constant rate latencies count from the instant a request was due. Started by the soak.

/** What to send, and how fast. It is read from the standard input: it may be longer than an argument. */
export interface LoadOrder {
  readonly url: string
  readonly method: 'GET' | 'POST'
  /** Requests per second. Default: as fast as they are answered. */
  readonly perSecond?: number
  readonly seconds: number
  readonly connections: number
  /** Bodies of requests, one after the other. Default: none. */
  readonly bodies?: readonly string[]
}

/** What was reached. */
export interface LoadOutcome {
  readonly perSecond: number
  readonly answered: number
  /** Requests that were not answered, or not in time. */
  readonly errors: number
  /** Answers with a status other than 2xx. */
  readonly not2xx: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly longestMs: number
}

const order = JSON.parse(await text(process.stdin)) as LoadOrder
const result = await autocannon({
  url: order.url,
  connections: order.connections,
  duration: order.seconds,
  ...(order.perSecond === undefined ? {} : { overallRate: order.perSecond }),
  method: order.method,
  headers: order.bodies === undefined ? {} : { 'content-type': 'application/json' },
  requests: order.bodies?.map((body) => ({ body })) ?? [{}],
})
const outcome: LoadOutcome = {
  perSecond: result.requests.total / result.duration,
  answered: result.requests.total,
  errors: result.errors + result.timeouts,
  not2xx: result.non2xx,
  p50Ms: result.latency.p50,
  p99Ms: result.latency.p99,
  p999Ms: result.latency.p99_9,
  longestMs: result.latency.max,
}
process.stdout.write(JSON.stringify(outcome))
process.exit(0)
