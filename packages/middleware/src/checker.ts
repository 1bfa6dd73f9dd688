import type { Charge } from './charge.ts'
import type { Eventually } from './eventually.ts'
import type { HttpRequest } from './http-request.ts'
import type { LimitMeaning } from './limit-meaning.ts'

/** Decides requests, whatever the limits come from. */
export interface Checker<Context> {
  /** What a decision is about that has no reports of its own; undefined where that is not known, or not always the same. */
  readonly meaning: LimitMeaning | undefined
  /** Decides a request, and charges it when it is allowed. */
  ask(context: Context, request: HttpRequest): Eventually<Charge>
  /** Frees what was made for it. May be called again. */
  close(): Promise<void>
}
