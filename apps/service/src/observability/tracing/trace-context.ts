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
