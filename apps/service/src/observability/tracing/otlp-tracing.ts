import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingHttpHeaders } from 'node:http'
import type { Context, HrTime, Span, Tracer } from '@opentelemetry/api'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import type { Clock } from '@sluice/core'
import { MICROS_PER_SECOND } from '@sluice/core/internal'
import type { PolicyDecision } from '@sluice/core/policy'
import type { Logger } from '@sluice/runtime'
import { errorFields } from '../error-fields.ts'
import type { RequestSpan, Tracing } from './tracing.ts'
import { formatTraceparent, NO_SPAN, parseTraceparent, TraceSampler } from './tracing.ts'

/** Options of {@link OtlpTracing}. */
export interface OtlpTracingParts {
  /** URL of the collector, such as `http://localhost:4318`. Spans are posted to `/v1/traces`. */
  readonly endpoint: string
  readonly clock: Clock
  /** Monotonic milliseconds, with fractions. */
  readonly monotonicMs: () => number
  readonly log: Logger
  /** Maximum number of requests recorded per second. Default: 100. */
  readonly mostPerSecond?: number
}

const MOST_PER_SECOND = 100

const NANOS_PER_MICRO = 1000
const MICROS_PER_MS = 1000

/** Maximum length of a propagated `tracestate`. */
const LONGEST_STATE = 512

const FIRST_FAILED_STATUS = 500

/** For a client span, every status from 400 is an error. */
const FIRST_REJECTED_STATUS = 300

type Api = typeof import('@opentelemetry/api')

/** The loaded libraries. */
interface Loaded {
  readonly api: Api
  readonly tracer: Tracer
  readonly provider: { shutdown(): Promise<void> }
}

/** A request in flight. */
interface Active {
  readonly span: Span
  readonly context: Context
}

/**
 * Sends spans to an OpenTelemetry collector by OTLP over HTTP. `start` loads the libraries; nothing is recorded before.
 * Spans wait in a bounded queue and are dropped when it is full: no request ever waits for the collector. Attributes
 * never contain callers.
 */
export class OtlpTracing implements Tracing {
  readonly #parts: OtlpTracingParts
  readonly #active = new AsyncLocalStorage<Active>()
  #loaded: Loaded | undefined

  constructor(parts: OtlpTracingParts) {
    this.#parts = parts
  }

  /** Loads the libraries. */
  async start(): Promise<void> {
    this.#loaded ??= await load(this.#parts)
  }

  /** Sends queued spans and ends. Can be called again. */
  async close(): Promise<void> {
    const loaded = this.#loaded
    this.#loaded = undefined
    // The exporter logs failures.
    await loaded?.provider.shutdown().catch(() => undefined)
  }

  begin(operation: string, headers: IncomingHttpHeaders): RequestSpan {
    return this.#loaded === undefined ? NO_SPAN : this.#begin(this.#loaded, operation, headers)
  }

  beginAsking(operation: string): RequestSpan {
    return this.#loaded === undefined ? NO_SPAN : this.#begin(this.#loaded, operation, undefined)
  }

  /** `headers`: of an incoming request; undefined for an outgoing one. */
  #begin({ api, tracer }: Loaded, operation: string, headers: IncomingHttpHeaders | undefined): RequestSpan {
    const [method = '', route = ''] = operation.split(' ')
    const start = this.#beginning()
    const isServer = headers !== undefined
    const parent = isServer ? parentContext(api, headers) : api.ROOT_CONTEXT
    const attributes = { 'http.request.method': method, ...(isServer ? { 'http.route': route } : {}) }
    const kind = isServer ? api.SpanKind.SERVER : api.SpanKind.CLIENT
    const span = tracer.startSpan(operation, { kind, startTime: start.time, attributes }, parent)
    const active = { span, context: api.trace.setSpan(parent, span) }
    return {
      run: (work) => this.#active.run(active, work),
      end: (status) => {
        if (status > 0) span.setAttribute('http.response.status_code', status)
        const isFailed = status === 0 || status >= (isServer ? FIRST_FAILED_STATUS : FIRST_REJECTED_STATUS)
        if (isFailed) span.setStatus({ code: api.SpanStatusCode.ERROR })
        span.end(start.after(this.#parts.monotonicMs() - start.monotonicMs))
      },
    }
  }

  decided(decision: PolicyDecision, durationMs: number): void {
    const active = this.#active.getStore()
    if (this.#loaded === undefined || active === undefined || !active.span.isRecording()) return
    const end = this.#parts.clock.nowMicros()
    const startTime = hrTime(end - Math.round(durationMs * MICROS_PER_MS))
    const span = this.#loaded.tracer.startSpan(
      'ratelimit.check',
      { startTime, attributes: attributesOf(decision) },
      active.context,
    )
    span.end(hrTime(end))
  }

  outgoingHeaders(): Readonly<Record<string, string>> {
    const active = this.#active.getStore()
    if (active === undefined) return {}
    const { traceId, spanId, traceFlags, traceState } = active.span.spanContext()
    const state = traceState?.serialize() ?? ''
    return {
      traceparent: formatTraceparent({ traceId, spanId, flags: traceFlags }),
      ...(state === '' ? {} : { tracestate: state }),
    }
  }

  /** Start by the wall clock, duration by the monotonic clock. */
  #beginning(): Beginning {
    const micros = this.#parts.clock.nowMicros()
    return {
      time: hrTime(micros),
      monotonicMs: this.#parts.monotonicMs(),
      after: (durationMs) => hrTime(micros + Math.round(durationMs * MICROS_PER_MS)),
    }
  }
}

interface Beginning {
  readonly time: HrTime
  readonly monotonicMs: number
  readonly after: (durationMs: number) => HrTime
}

async function load(parts: OtlpTracingParts): Promise<Loaded> {
  const { clock, mostPerSecond = MOST_PER_SECOND } = parts
  const [api, { BatchSpanProcessor, SamplingDecision, TracerProvider }, { resourceFromAttributes }] = await Promise.all(
    [import('@opentelemetry/api'), import('@opentelemetry/sdk-trace'), import('@opentelemetry/resources')],
  )
  const sampler = new TraceSampler({
    nowMs: () => clock.nowMicros() / MICROS_PER_MS,
    mostPerSecond,
    parentOf: (context) => {
      const parent = api.trace.getSpanContext(context)
      if (parent === undefined) return undefined
      const { traceId, spanId, traceFlags, isRemote = false } = parent
      return { traceId, spanId, flags: traceFlags, isRemote }
    },
    decisions: {
      record: { decision: SamplingDecision.RECORD_AND_SAMPLED },
      ignore: { decision: SamplingDecision.NOT_RECORD },
    },
  })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'sluice' }),
    sampler,
    spanProcessors: [new BatchSpanProcessor({ exporter: await exporterTo(parts) })],
  })
  return { api, provider, tracer: provider.getTracer('sluice') }
}

/** Logs once when spans cannot be delivered, until they can. */
async function exporterTo({ endpoint, log }: OtlpTracingParts): Promise<SpanExporter> {
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http')
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` })
  let isFailing = false
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const hasFailed = result.code !== 0
        if (hasFailed && !isFailing) {
          log.warn('could not deliver traces; they are dropped', { error: errorFields(result.error) })
        }
        isFailing = hasFailed
        done(result)
      }),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  }
}

function parentContext(api: Api, headers: IncomingHttpHeaders): Context {
  const parent = parseTraceparent(headers['traceparent'])
  if (parent === undefined) return api.ROOT_CONTEXT
  const { tracestate } = headers
  const isUsable = typeof tracestate === 'string' && tracestate.length <= LONGEST_STATE
  return api.trace.setSpanContext(api.ROOT_CONTEXT, {
    traceId: parent.traceId,
    spanId: parent.spanId,
    traceFlags: parent.flags,
    isRemote: true,
    ...(isUsable ? { traceState: api.createTraceState(tracestate) } : {}),
  })
}

function attributesOf(decision: PolicyDecision): Readonly<Record<string, string | number | boolean>> {
  const { allowed, reason, rule, dimension, version, failure } = decision
  return {
    'ratelimit.allowed': allowed,
    'ratelimit.reason': reason,
    'ratelimit.rule': rule,
    'ratelimit.dimension': dimension,
    'ratelimit.version': version,
    ...(failure === undefined
      ? {}
      : { 'ratelimit.failure_mode': failure.mode, 'ratelimit.failure_cause': failure.cause }),
  }
}

/** Seconds and nanoseconds, because the library interprets a small plain number differently. */
function hrTime(micros: number): HrTime {
  const seconds = Math.floor(micros / MICROS_PER_SECOND)
  return [seconds, Math.round(micros - seconds * MICROS_PER_SECOND) * NANOS_PER_MICRO]
}
