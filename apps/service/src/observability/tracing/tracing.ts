import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '@opentelemetry/api'
import type { Sampler, SamplingResult } from '@opentelemetry/sdk-trace'
import type { PolicyDecision } from '@sluice/core/policy'
import type { NowMs } from '@sluice/runtime'

/** The span of one request. */
export interface RequestSpan {
  /** Runs the handler of the request within the span. */
  run<T>(work: () => T): T
  /** Ends the span with the status of the response; 0: no response. Call it once. */
  end(status: number): void
}

/** Records requests as spans. */
export interface Tracing {
  /** Begins the span of an incoming request. */
  begin(operation: string, headers: IncomingHttpHeaders): RequestSpan
  /** Begins a trace for an outgoing request that no incoming request caused. `operation`: `METHOD name`. */
  beginAsking(operation: string): RequestSpan
  /** Records a decision and its duration, within the current request. */
  decided(decision: PolicyDecision, durationMs: number): void
  /** Headers that propagate the current span to an outgoing request. */
  outgoingHeaders(): Readonly<Record<string, string>>
}

/** The span of a request that is not recorded. */
export const NO_SPAN: RequestSpan = { run: (work) => work(), end: () => undefined }

/** Parent of a span in W3C Trace Context. */
export interface TraceParent {
  /** 32 hexadecimal digits, not all zero. */
  readonly traceId: string
  /** 16 hexadecimal digits, not all zero. */
  readonly spanId: string
  /** Flags; the lowest bit: the caller records the trace. */
  readonly flags: number
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

const ZEROS = /^0+$/

/** Flag: recorded. */
const SAMPLED = 1

/** Parses a `traceparent` header; undefined if it is missing or invalid. The request begins a trace then. */
export function parseTraceparent(header: unknown): TraceParent | undefined {
  if (typeof header !== 'string') return undefined
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(header.trim()) ?? []
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return undefined
  // Only later versions may have more fields.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined
  return { traceId, spanId, flags: Number.parseInt(flags, 16) }
}

/** The `traceparent` header of a span. */
export function formatTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-0${flags & SAMPLED}`
}

/** Whether the caller records the trace. */
export function isSampled({ flags }: TraceParent): boolean {
  return (flags & SAMPLED) === SAMPLED
}

/** Options of {@link TraceSampler}. */
export interface TraceSamplerParts {
  readonly nowMs: NowMs
  /** Maximum number of recorded requests per second. */
  readonly mostPerSecond: number
  /** Parent of a span; undefined if it begins a trace. */
  readonly parentOf: (context: Context) => (TraceParent & { readonly isRemote: boolean }) | undefined
  /** The two decisions in terms of the library. */
  readonly decisions: { readonly record: SamplingResult; readonly ignore: SamplingResult }
}

/**
 * Records requests whose callers record them, and requests that begin a trace, up to a maximum per second. Spans within
 * a request are recorded with it.
 */
export class TraceSampler implements Sampler {
  readonly #parts: TraceSamplerParts
  #second = Number.NaN
  #recorded = 0

  constructor(parts: TraceSamplerParts) {
    this.#parts = parts
  }

  shouldSample(context: Context): SamplingResult {
    const { parentOf, decisions } = this.#parts
    const parent = parentOf(context)
    if (parent !== undefined && !isSampled(parent)) return decisions.ignore
    if (parent !== undefined && !parent.isRemote) return decisions.record
    return this.#hasRoom() ? decisions.record : decisions.ignore
  }

  #hasRoom(): boolean {
    const second = Math.floor(this.#parts.nowMs() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#recorded = 0
    }
    if (this.#recorded >= this.#parts.mostPerSecond) return false
    this.#recorded++
    return true
  }
}
