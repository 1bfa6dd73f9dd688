import type { OperationId } from '@sluice/contract'
import { OPERATIONS } from '@sluice/contract'
import type { Endpoint } from '../listeners/http/endpoints.ts'
import { operationRoutes } from '../listeners/http/endpoints.ts'
import { BodyReader } from '../listeners/http/request-body.ts'
import type { AnyRequest, OperationHandlers, Reply } from './handler.ts'
import { serviceDocument } from './openapi.ts'
import { invalidRequestAnswer } from './problems.ts'

// What the tests of handlers share: calls that are decoded as the listener decodes requests.

/** A request before it is decoded. */
export interface RawCall extends Partial<Pick<AnyRequest, 'headers' | 'principal' | 'remoteAddress' | 'signal'>> {
  /** The values of the names in braces of the path. Default: none. */
  readonly params?: Readonly<Record<string, string>>
  /** Without `?`. Default: empty. */
  readonly query?: string
  /** The parsed JSON. */
  readonly body?: unknown
}

const TREATMENT = { inFlightLimit: undefined, bodies: new BodyReader(1_000_000), needsKey: false, hasRequestId: false }

/** Calls handlers with decoded requests; what they throw is answered as in the service. */
export class DecodedCalls {
  readonly #handlers: Partial<OperationHandlers<OperationId>>
  readonly #endpoints = new Map<OperationId, Endpoint>()

  constructor(handlers: Partial<OperationHandlers<OperationId>>) {
    this.#handlers = handlers
  }

  /** What comes of a request to an operation. */
  call(id: OperationId, raw: RawCall = {}): Reply | Promise<Reply> {
    const { params = {}, query = '', headers = {}, body: json, principal, remoteAddress = '127.0.0.1' } = raw
    const { signal = new AbortController().signal } = raw
    const { decode, body, handle } = this.#endpointOf(id)
    const head = decode({ params, query: new URLSearchParams(query), hasQuery: query !== '', headers })
    if (!head.ok) return head.answer
    const decoded = body === undefined ? { ok: true as const, body: undefined } : body.decode(json)
    if (!decoded.ok) return invalidRequestAnswer(decoded)
    const { parameters, precondition } = head
    return handle({ parameters, precondition, body: decoded.body, headers, principal, remoteAddress, signal })
  }

  #endpointOf(id: OperationId): Endpoint {
    let endpoint = this.#endpoints.get(id)
    if (endpoint === undefined) {
      const [route] = operationRoutes({
        operations: [OPERATIONS[id]],
        handlers: this.#handlers,
        components: serviceDocument('test').components.schemas,
        authenticator: { authenticate: () => ({ id: 'slk_1', name: 'ada', role: 'admin' }) },
        treatmentOf: () => TREATMENT,
      })
      endpoint = route!.target
      this.#endpoints.set(id, endpoint)
    }
    return endpoint
  }
}
