import type { CounterSeries, GaugeSeries, HistogramSeries, LogFields, Logger, MetricRegistry } from '@sluice/runtime'
import { METRIC, NONE } from '../../observability/metrics/metric-names.ts'
import { digestOf } from '../../observability/top-callers.ts'
import type { RequestSpan, Tracing } from '../../observability/tracing/tracing.ts'
import type { Answer, AnyHandler, Reply, RequestContext } from '../../operations/handler.ts'
import { answerToError } from '../../operations/problems.ts'

/** A request that was answered before it came to a handler. */
export interface RejectedRequest {
  /**
   * `METHOD /path` of what was asked for; undefined where there is nothing of that kind, or it was no request at all.
   */
  readonly operation: string | undefined
  readonly status: number
  /** Address of the other end of the connection. */
  readonly remoteAddress: string
}

/** What requests are observed with. */
export interface RequestObservation {
  readonly metrics: MetricRegistry
  readonly log: Logger
  /** Milliseconds since some instant, with fractions, never going back. */
  readonly monotonicMs: () => number
  /** Goes into the digests of addresses; read at each use. */
  readonly secret: Uint8Array
  /** Default: none. */
  readonly tracing?: Tracing | undefined
}

const DURATION_BOUNDS_SECONDS = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5,
]

const MS_PER_SECOND = 1000

const MOST_SERIES = 1000

const FIRST_FAILED_STATUS = 500

/** Frequent operations: one request in a thousand is logged. */
const OFTEN = /^none$|^\w+ \/(?:internal\/|v1\/|livez$|readyz$|metrics$)/
const OFTEN_EVERY = 1000

/**
 * Counts every request and logs it: all requests to the admin API, one in a thousand of frequent or unauthenticated
 * ones, and every request that a handler could not answer. Those that come to a handler are timed and traced as well.
 */
export class RequestObserver {
  readonly #observation: RequestObservation
  readonly #shared: SharedSeries
  readonly #records = new Map<string, OperationRecord>()

  constructor(observation: RequestObservation) {
    this.#observation = observation
    this.#shared = sharedSeries(observation.metrics)
  }

  /** Counts a request that no handler was asked about. */
  rejected({ operation = NONE, status, remoteAddress }: RejectedRequest): void {
    this.recordOf(operation).rejected(status, remoteAddress)
  }

  /** Where the requests to an operation are recorded. `operation`: `METHOD /path`. */
  recordOf(operation: string): OperationRecord {
    let record = this.#records.get(operation)
    if (record === undefined) {
      record = new OperationRecord(operation, this.#shared, this.#observation)
      this.#records.set(operation, record)
    }
    return record
  }
}

/**
 * Records the requests of a handler, and answers what it throws with a problem document. A synchronous handler stays
 * synchronous. Without a record, nothing is recorded.
 */
export function observed(handle: AnyHandler, record: OperationRecord | undefined): AnyHandler {
  return (request) => {
    const begun = record?.begin(request)
    let reply: Reply | Promise<Reply>
    try {
      reply = begun?.span === undefined ? handle(request) : begun.span.run(() => handle(request))
    } catch (error) {
      return answerToThrown(error, begun)
    }
    if ('status' in reply) {
      begun?.record.answered(begun, reply.status)
      return reply
    }
    return reply.then(
      (later) => {
        begun?.record.answered(begun, later.status)
        return later
      },
      (error: unknown) => answerToThrown(error, begun),
    )
  }
}

/** Throws what no client is at fault for. */
function answerToThrown(error: unknown, begun: Begun | undefined): Answer {
  const answer = answerToError(error)
  if (answer === undefined) {
    begun?.record.failed(begun)
    throw error
  }
  begun?.record.answered(begun, answer.status)
  return answer
}

/** A request that is being answered. */
interface Begun {
  readonly record: OperationRecord
  readonly request: RequestContext
  readonly startedMs: number
  readonly span: RequestSpan | undefined
}

/** Observes the requests to one operation. */
export class OperationRecord {
  readonly #operation: string
  readonly #observation: RequestObservation
  readonly #shared: SharedSeries
  readonly #byStatus = new Map<number, CounterSeries>()
  readonly #every: number
  #count = 0
  #rejections = 0
  /** There from the first request on: most operations are not used in most processes. */
  #duration: HistogramSeries | undefined

  constructor(operation: string, shared: SharedSeries, observation: RequestObservation) {
    this.#operation = operation
    this.#observation = observation
    this.#shared = shared
    this.#every = OFTEN.test(operation) ? OFTEN_EVERY : 1
  }

  begin(request: RequestContext): Begun {
    const { monotonicMs, tracing } = this.#observation
    this.#shared.inFlight.add(1)
    return { record: this, request, startedMs: monotonicMs(), span: tracing?.begin(this.#operation, request.headers) }
  }

  answered(begun: Begun, status: number): void {
    const durationMs = this.#end(begun, status)
    const isTold = this.#count % this.#every === 0
    this.#count++
    if (!isTold && !isFailure(status)) return
    const { remoteAddress, principal } = begun.request
    const fields = { durationMs: Number(durationMs.toFixed(3)), ...(principal && { principal: principal.id }) }
    this.#tell(status, remoteAddress, { ...fields, ...this.#oneOf(this.#every) })
  }

  /** The caller of the handler logs the error. */
  failed(begun: Begun): void {
    this.#end(begun, FIRST_FAILED_STATUS)
  }

  rejected(status: number, remoteAddress: string): void {
    this.#countOf(status).inc()
    // When there is too much to do, there is enough to do without a line for each that is rejected.
    const every = isFailure(status) ? OFTEN_EVERY : this.#every
    const isTold = this.#rejections % every === 0
    this.#rejections++
    if (isTold) this.#tell(status, remoteAddress, this.#oneOf(every))
  }

  #end({ startedMs, span }: Begun, status: number): number {
    const durationMs = Math.max(0, this.#observation.monotonicMs() - startedMs)
    this.#shared.inFlight.add(-1)
    this.#duration ??= this.#shared.durationOf(this.#operation)
    this.#duration.observe(durationMs / MS_PER_SECOND)
    this.#countOf(status).inc()
    span?.end(status)
    return durationMs
  }

  #countOf(status: number): CounterSeries {
    let count = this.#byStatus.get(status)
    if (count === undefined) {
      count = this.#shared.countOf(this.#operation, String(status))
      this.#byStatus.set(status, count)
    }
    return count
  }

  #oneOf(every: number): LogFields {
    return every === 1 ? {} : { oneOf: every }
  }

  #tell(status: number, remoteAddress: string, fields: LogFields): void {
    const { log, secret } = this.#observation
    const level = isFailure(status) ? 'warn' : 'info'
    if (!log.isEnabled(level)) return
    const message = isFailure(status) ? 'a request could not be answered' : 'request'
    log[level](message, {
      operation: this.#operation,
      status,
      caller: digestOf(remoteAddress, secret),
      ...fields,
    })
  }
}

function isFailure(status: number): boolean {
  return status >= FIRST_FAILED_STATUS
}

/** What the records of all operations count in. */
interface SharedSeries {
  readonly inFlight: GaugeSeries
  readonly durationOf: (operation: string) => HistogramSeries
  readonly countOf: (operation: string, status: string) => CounterSeries
}

function sharedSeries(metrics: MetricRegistry): SharedSeries {
  const duration = metrics.histogram({
    name: 'sluice_http_request_duration_seconds',
    help: 'How long requests took to answer, in seconds.',
    labels: ['operation'],
    bounds: DURATION_BOUNDS_SECONDS,
    mostSeries: MOST_SERIES,
  })
  const requests = metrics.counter({
    name: 'sluice_http_requests_total',
    help: 'Requests that were answered, by operation and status.',
    labels: ['operation', 'status'],
    mostSeries: MOST_SERIES,
  })
  return {
    inFlight: metrics
      .gauge({ name: METRIC.inFlight, help: 'Requests that are being answered.', merge: 'sum' })
      .labels(),
    durationOf: (operation) => duration.labels({ operation }),
    countOf: (operation, status) => requests.labels({ operation, status }),
  }
}
