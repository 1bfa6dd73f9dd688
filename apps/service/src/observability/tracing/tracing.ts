import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '@opentelemetry/api'
import type { Sampler, SamplingResult } from '@opentelemetry/sdk-trace'
import type { PolicyDecision } from '@sluice/core/policy'
import type { NowMs } from '@sluice/runtime'

/** The span of one request. */
export interface RequestSpan {
  /** Runs what answers the request, so that what it does belongs to the span. */
  run<T>(work: () => T): T
  /** It was answered with this status; 0 where there was no answer. To be called once. */
  end(status: number): void
}

/** Records what happens to requests as spans of traces. */
export interface Tracing {
  /** A request to this operation has come. */
  begin(operation: string, headers: IncomingHttpHeaders): RequestSpan
  /** Something is about to be asked of another, by nobody's request: it begins a trace. `operation`: `METHOD what`. */
  beginAsking(operation: string): RequestSpan
  /** A decision was made just now, that took so long; it belongs to the request that is being answered. */
  decided(decision: PolicyDecision, durationMs: number): void
  /** Headers for what is asked of others while a span runs, so that it belongs to the same trace. */
  outgoingHeaders(): Readonly<Record<string, string>>
}

/** The span of a request that is not recorded. */
export const NO_SPAN: RequestSpan = { run: (work) => work(), end: () => undefined }

/** Where a request comes from in a trace, as the W3C Trace Context says it. */
export interface TraceParent {
  /** 32 hexadecimal digits, not all zero. */
  readonly traceId: string
  /** 16 hexadecimal digits, not all zero. */
  readonly spanId: string
  /** A byte of flags; the lowest says whether the caller records the trace. */
  readonly flags: number
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

const ZEROS = /^0+$/

/** Tells those who ask us whether we record. */
const SAMPLED = 1

/** Reads a `traceparent` header; undefined when there is none or it is not valid, so that the request begins a trace. */
export function parseTraceparent(header: unknown): TraceParent | undefined {
  if (typeof header !== 'string') return undefined
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(header.trim()) ?? []
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return undefined
  // Only later versions may say more.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined
  return { traceId, spanId, flags: Number.parseInt(flags, 16) }
}

/** The `traceparent` header for what a span asks of others. */
export function formatTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-0${flags & SAMPLED}`
}

/** Whether the caller records the trace. */
export function isSampled({ flags }: TraceParent): boolean {
  return (flags & SAMPLED) === SAMPLED
}

/** What a {@link TraceSampler} works with. */
export interface TraceSamplerParts {
  readonly nowMs: NowMs
  /** Most requests that are recorded in one second of the clock. */
  readonly mostPerSecond: number
  /** Where a span comes from; undefined when it begins a trace. */
  readonly parentOf: (context: Context) => (TraceParent & { readonly isRemote: boolean }) | undefined
  /** What the library calls the two decisions. */
  readonly decisions: { readonly record: SamplingResult; readonly ignore: SamplingResult }
}

/**
 * Decides which requests are recorded: those whose callers record theirs, and those that begin a trace; not those whose callers
 * do not record. No more than so many in a second, whatever callers ask for. What happens within a request is recorded with it.
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
