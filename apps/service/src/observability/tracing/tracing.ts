import type { IncomingHttpHeaders } from 'node:http'
import type { PolicyDecision } from '@sluice/core'

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
