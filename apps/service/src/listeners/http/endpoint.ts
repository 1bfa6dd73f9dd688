import type { FieldProblem } from '@sluice/contract'
import type { InFlight } from '@sluice/runtime'
import type { Answer } from '../../operations/answer.ts'
import type { OperationHandler, OperationRequest, Principal } from '../../operations/handler.ts'
import type { BodyReader } from './request-body.ts'

/** How the body of a request is read. */
export interface BodyForm {
  readonly maxBytes: number
  /** Bounds what unfinished bodies hold; shared by endpoints. */
  readonly reader: BodyReader
  /** What is wrong with the parsed JSON; nothing is looked at when left out, because the handler does. */
  readonly problemsOf?: ((value: unknown) => readonly FieldProblem[]) | undefined
}

/** The parameters of a request. */
export interface RequestParameters extends Pick<OperationRequest, 'params' | 'query'> {
  /** Whether there is a query: known without reading it. */
  readonly hasQuery: boolean
}

/** Everything that happens to the requests for one operation, in this order; what is undefined is left out. */
export interface Endpoint {
  /** `METHOD /path` of its operation: for logs. */
  readonly name: string
  /** Bounds how many are in flight. A request takes its slot when its body is complete: a slow client holds none. */
  readonly lane: InFlight | undefined
  /** Who asks, or the answer to give whoever may not. */
  readonly admit: ((request: OperationRequest) => Principal | Answer | Promise<Principal | Answer>) | undefined
  /** The answer to parameters that are wrong; undefined when all are right. */
  readonly refuseParameters: ((request: RequestParameters) => Answer | undefined) | undefined
  readonly body: BodyForm | undefined
  readonly handle: OperationHandler
  /**
   * Whether requests that come in one turn of the event loop are handled together at its end: for handlers that answer at once,
   * and are asked tens of thousands of times in a second. Not when left out.
   */
  readonly answersAtTurnEnd?: boolean
  /** Whether requests are answered whatever their Host header. Default: only those that the service answers to. */
  readonly takesAnyHost?: boolean
  /** Whether answers carry the id of the request; checks do not, because their decisions have ids of their own. */
  readonly hasRequestId: boolean
}
