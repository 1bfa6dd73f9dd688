import type { HttpRequest } from '../http/http-request.ts'
import type { Eventually } from '../http/maybe-promise.ts'
import type { Charge } from './charge.ts'
import type { LimitMeaning } from './limit-meaning.ts'

/** Decides requests, whatever the limits come from. */
export interface Checker<Context> {
  /** What a decision is about that has no reports of its own; undefined where that is not known, or not always the same. */
  readonly meaning: LimitMeaning | undefined
  /**
   * Decides a request, charges it when it is allowed, and goes on with that. Each step that a promise is awaited in costs every
   * request on a remote store, so that the next step is handed in instead.
   */
  ask<R>(context: Context, request: HttpRequest, go: (charge: Charge) => Eventually<R>): Eventually<R>
  /** Frees what was made for it. May be called again. */
  close(): Promise<void>
}
