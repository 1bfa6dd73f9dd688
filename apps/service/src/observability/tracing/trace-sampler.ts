import type { Context } from '@opentelemetry/api'
import type { Sampler, SamplingResult } from '@opentelemetry/sdk-trace'
import type { NowMs } from '@sluice/runtime'
import type { TraceParent } from './trace-context.ts'
import { isSampled } from './trace-context.ts'

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
