import type { IncomingHttpHeaders } from 'node:http'
import type { FieldProblem, Operation, OperationId, OperationParameter, Parsed, Precondition } from '@sluice/contract'
import { BODY_READERS, expectedRevision } from '@sluice/contract'
import type { JsonSchema } from '@sluice/core/internal'
import { SchemaCheck } from '@sluice/core/internal'
import type { LoopDelay } from '@sluice/runtime'
import { InFlight, LagGuard } from '@sluice/runtime'
import type { Authenticator } from '../../auth/authenticator.ts'
import type { Sessions } from '../../auth/sessions.ts'
import type { Narrowing } from '../../auth/tenant-scope.ts'
import { narrowingOf, notForTenants } from '../../auth/tenant-scope.ts'
import type { Answer, AnyHandler, OperationHandlers, Principal, RequestContext } from '../../operations/handler.ts'
import { thenMaybe } from '../../operations/handler.ts'
import { changedMeanwhile, invalidRequestAnswer } from '../../operations/problems.ts'
import type { ServiceContext } from '../../service-context.ts'
import { BodyReader, oversizedPart } from './request-body.ts'
import type { RequestObserver } from './request-observer.ts'
import { observed } from './request-observer.ts'
import type { Route } from './router.ts'

/** Everything that happens to the requests for one operation, in this order; what is undefined is left out. */
export interface Endpoint {
  /** `METHOD /path` of its operation: for logs. */
  readonly name: string
  /** Bounds how many are in flight. A request takes its slot when its body is complete: a slow client holds none. */
  readonly inFlightLimit: InFlight | undefined
  /** Authenticates a request: returns its principal, or the answer that rejects it. */
  readonly admit: ((request: RequestContext) => Principal | Answer | Promise<Principal | Answer>) | undefined
  /** The parameters and the precondition, as the table of operations declares them. */
  readonly decode: (request: UndecodedRequest) => DecodedRequest
  /** For the key of a tenant: makes the request one about that tenant, or rejects it. */
  readonly narrow: Narrowing | undefined
  readonly body: BodyReading | undefined
  readonly handle: AnyHandler
  /**
   * Whether requests that arrive in one turn of the event loop are handled together at its end. For synchronous
   * handlers that are called tens of thousands of times per second. Default: false.
   */
  readonly answersAtTurnEnd?: boolean
  /** Whether requests are answered whatever their Host header. Default: only those that the service answers to. */
  readonly takesAnyHost?: boolean
  /** Whether answers carry the id of the request; checks do not, because their decisions have ids of their own. */
  readonly hasRequestId: boolean
}

/** How the body of a request is read. */
export interface BodyReading {
  readonly maxBytes: number
  /** Bounds what unfinished bodies hold; shared by endpoints. */
  readonly reader: BodyReader
  /** The body that the handler receives, made of the parsed JSON; or what is wrong with it. */
  readonly decode: (value: unknown) => DecodedBody
}

/** A body as its handler receives it, or what is wrong with it. */
export type DecodedBody =
  | { readonly ok: true; readonly body: unknown }
  | { readonly ok: false; readonly problems: readonly FieldProblem[]; readonly unlisted?: number }

/** The head of a request before it is decoded. */
export interface UndecodedRequest {
  /** By the names in braces of the path. */
  readonly params: Readonly<Record<string, string>>
  /** Whether there is a query: known without reading it. */
  readonly hasQuery: boolean
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
}

/** The parameters of a request, by name. */
export type Parameters = Readonly<Record<string, unknown>>

/** The head of a request once it is decoded, or the answer to one that cannot be. */
export type DecodedRequest =
  | { readonly ok: true; readonly parameters: Parameters; readonly precondition: Precondition | undefined }
  | { readonly ok: false; readonly answer: Answer }

/** What the endpoints of operations are made with. */
export interface EndpointParts {
  readonly operations: readonly Operation[]
  /** Operations without one are not answered. */
  readonly handlers: Partial<OperationHandlers<OperationId>>
  /** The schemas that those of the operations refer to as `#/components/schemas/<name>`. */
  readonly components: Readonly<Record<string, unknown>>
  readonly authenticator: Pick<Authenticator, 'authenticate'>
  /** Takes the place of a key for browsers, where an operation needs a role. Default: keys only. */
  readonly sessions?: Pick<Sessions, 'hasCookie' | 'authenticate'>
  /** Settings of an operation that the table of operations does not have. */
  readonly treatmentOf: (operation: Operation) => Treatment
  /** Records the requests. Default: none. */
  readonly observer?: RequestObserver
}

/** How an operation is dealt with. */
export interface Treatment {
  /** Limits its requests in flight. Undefined for operations that must be answered in every state. */
  readonly inFlightLimit: InFlight | undefined
  /** Reads its bodies. */
  readonly bodies: BodyReader
  /** Whether a valid key of any role is required although the operation needs none. */
  readonly needsKey: boolean
  readonly hasRequestId: boolean
  /** See {@link Endpoint}, here and below. */
  readonly takesAnyHost?: boolean
  readonly answersAtTurnEnd?: boolean
}

/** The routes of all operations that have a handler. */
export function operationRoutes(parts: EndpointParts): readonly Route<Endpoint>[] {
  const check = new SchemaCheck({ components: { schemas: parts.components } } as JsonSchema)
  return parts.operations.flatMap((operation) => {
    // The table of handlers is typed by id; here all operations are treated alike.
    const handle = parts.handlers[operation.id as OperationId] as AnyHandler | undefined
    if (handle === undefined) return []
    const { path, method } = operation
    return [{ path, method, target: endpointOf(operation, handle, { ...parts, check }) }]
  })
}

function endpointOf(
  operation: Operation,
  handle: AnyHandler,
  { check, treatmentOf, authenticator, sessions, observer }: EndpointParts & { readonly check: SchemaCheck },
): Endpoint {
  const { inFlightLimit, bodies, needsKey, hasRequestId, answersAtTurnEnd, takesAnyHost } = treatmentOf(operation)
  const { id, method, path, role, body, maxBodyBytes } = operation
  const name = `${method} ${path}`
  const isOpen = role === 'none' && !needsKey
  const narrow = isOpen ? undefined : narrowingOf(id)
  const identify = (request: RequestContext): Principal | Answer | Promise<Principal | Answer> => {
    const isSession = role !== 'none' && request.headers.authorization === undefined && sessions?.hasCookie(request)
    if (isSession === true) return sessions!.authenticate(request, { role, isChange: method !== 'GET' })
    return authenticator.authenticate(request, role)
  }
  const rejectTenant = (who: Principal | Answer): Principal | Answer => {
    const isForAll = narrow === undefined && 'tenant' in who && who.tenant !== undefined
    return isForAll ? notForTenants(role) : who
  }
  return {
    name,
    inFlightLimit,
    admit: isOpen ? undefined : (request) => thenMaybe(identify(request), rejectTenant),
    decode: headDecoder(operation),
    narrow,
    body:
      body === undefined
        ? undefined
        : { maxBytes: maxBodyBytes, reader: bodies, decode: bodyDecoder(operation, check) },
    handle: observed(handle, observer?.recordOf(name)),
    hasRequestId,
    answersAtTurnEnd: answersAtTurnEnd ?? false,
    takesAnyHost: takesAnyHost ?? false,
  }
}

/** By the reader that the contract has for the operation, or else by its schema. */
function bodyDecoder({ id, body }: Operation, check: SchemaCheck): BodyReading['decode'] {
  const readers: Readonly<Record<string, (value: unknown) => Parsed<object>>> = BODY_READERS
  const read = readers[id]
  if (read !== undefined) {
    return (value) => {
      const parsed = read(value)
      return parsed.ok ? { ok: true, body: parsed } : parsed
    }
  }
  const part = body!.$ref!
  // A schema that cannot be checked by is a mistake to find now, and not with the first request.
  check.problemsOf(undefined, part)
  return (value) => {
    const oversized = oversizedPart(value)
    const problems = oversized === undefined ? check.problemsOf(value, part) : [oversized]
    return problems.length === 0 ? { ok: true, body: value } : { ok: false, problems }
  }
}

const NO_PARAMETERS: DecodedRequest = { ok: true, parameters: Object.freeze({}), precondition: undefined }

function headDecoder(operation: Operation): Endpoint['decode'] {
  const { method, hasEtag } = operation
  const decodeParameters = parameterDecoder(operation)
  if (!hasEtag || method === 'GET') return decodeParameters
  return (request) => {
    const decoded = decodeParameters(request)
    if (!decoded.ok) return decoded
    const precondition = preconditionOf(request.headers)
    return typeof precondition === 'object'
      ? { ok: false, answer: precondition }
      : { ok: true, parameters: decoded.parameters, precondition }
  }
}

function parameterDecoder({ parameters, role, body }: Operation): Endpoint['decode'] {
  const declared = Object.entries(parameters)
  const queries = new Map(declared.filter(([, { in: place }]) => place === 'query'))
  if (declared.length === 0) {
    // Health checks and the like take any query.
    const takesAnyQuery = role === 'none' && body === undefined
    return (request) =>
      takesAnyQuery || !request.hasQuery ? NO_PARAMETERS : invalid(queryProblems(queries, request.query))
  }
  const defaults = Object.fromEntries(
    declared.flatMap(([name, { schema }]) => (schema.default === undefined ? [] : [[name, schema.default]])),
  )
  const properties = Object.fromEntries(declared.map(([name, { schema }]) => [name, schema as JsonSchema]))
  const check = new SchemaCheck({ type: 'object', properties })
  return ({ params, query }) => {
    const texts = { ...Object.fromEntries([...query].filter(([name]) => queries.has(name))), ...params }
    const given = numbersIn(texts, parameters)
    const wrong = check.problemsOf(given).map(({ path, ...problem }) => ({ ...problem, path: `?${path.slice(1)}` }))
    const problems = [...queryProblems(queries, query), ...wrong]
    if (problems.length > 0) return invalid(problems)
    return { ok: true, parameters: { ...defaults, ...given }, precondition: undefined }
  }
}

function invalid(problems: readonly FieldProblem[]): DecodedRequest {
  return problems.length === 0 ? NO_PARAMETERS : { ok: false, answer: invalidRequestAnswer({ problems }) }
}

/** Parameters that are unknown, missing, or there more than once. */
function queryProblems(
  declared: ReadonlyMap<string, OperationParameter>,
  query: URLSearchParams,
): readonly FieldProblem[] {
  const problems: FieldProblem[] = []
  const expected = declared.size === 0 ? 'no parameters' : `only ${[...declared.keys()].join(', ')}`
  for (const name of new Set(query.keys())) {
    const count = query.getAll(name).length
    const path = `?${shortened(name)}`
    if (!declared.has(name)) problems.push({ path, received: 'an unknown parameter', expected })
    else if (count > 1) problems.push({ path, received: `it ${count} times`, expected: 'it once' })
  }
  for (const [name, { required }] of declared) {
    if (required && !query.has(name))
      problems.push({ path: `?${name}`, received: 'nothing', expected: 'it to be given' })
  }
  return problems
}

/** Texts that stand for numbers as numbers. */
function numbersIn(
  texts: Readonly<Record<string, string>>,
  declared: Readonly<Record<string, OperationParameter>>,
): Parameters {
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => {
      const isNumber = declared[name]?.schema.type === 'integer' && /^-?\d{1,15}$/.test(text)
      return [name, isNumber ? Number(text) : text]
    }),
  )
}

function shortened(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}...` : name.toWellFormed()
}

/**
 * What `If-Match` or `If-None-Match` asks for; undefined when there is neither; the answer when it cannot be
 * understood.
 */
export function preconditionOf({
  'if-match': ifMatch,
  'if-none-match': ifNoneMatch,
}: IncomingHttpHeaders): Precondition | undefined | Answer {
  if (ifNoneMatch !== undefined) {
    const isUnderstood = ifNoneMatch.trim() === '*' && ifMatch === undefined
    return isUnderstood
      ? 'none'
      : changedMeanwhile('If-None-Match is understood as "*" only, and not beside If-Match').answer
  }
  if (ifMatch === undefined) return undefined
  const expected = expectedRevision(ifMatch)
  return expected === 'unknown' ? changedMeanwhile('If-Match has no ETag that this service gave').answer : expected
}

/** Maximum number of requests in flight per thread, except checks, which have their own limit. */
const MOST_OTHERS_IN_FLIGHT = 200

/**
 * Bytes that the unfinished bodies of a thread hold at most: those of the check API, which needs no key on this
 * machine, and those of all other operations. Each holds four of the largest bodies.
 */
const MOST_BODY_BYTES = 33_554_432

/**
 * These end what a check has begun: to reject them for lack of room would keep what is held, and there would be no end
 * to it.
 */
const ENDINGS: ReadonlySet<string> = new Set<OperationId>(['settle', 'release', 'heartbeat'])

/** Answered in every state, because orchestrators decide by them whether to restart this process. */
const ALWAYS_ANSWERED: ReadonlySet<string> = new Set<OperationId>(['livez', 'readyz', 'metrics'])

/** Probed by address, whatever names the service has. */
const PROBES: ReadonlySet<string> = new Set<OperationId>(['livez', 'readyz'])

/**
 * So late the event loop must be before checks are rejected for lack of capacity. A collection of garbage or a
 * neighbour on the same machine takes a tenth of that now and then; who is rejected for it would only ask again.
 */
const LATE_FROM_MS = 1000

/** How the operations of one thread are dealt with. `checkKey`: whether checks on a listener require a key. */
export function treatments(
  { clock, settings, store }: Pick<ServiceContext, 'clock' | 'settings' | 'store'>,
  delay: LoopDelay,
): (operation: Operation, checkKey: boolean) => Treatment {
  // A remote store batches the calls of one turn anyway.
  const answersAtTurnEnd = store.mode === 'sync'
  const guard = new LagGuard({ delay, nowMs: () => clock.nowMicros() / 1000, lateFromMs: LATE_FROM_MS })
  const checks = new InFlight({ most: settings.maxInFlight, isOverloaded: () => guard.isLate() })
  const endings = new InFlight({ most: settings.maxInFlight })
  const others = new InFlight({ most: MOST_OTHERS_IN_FLIGHT })
  const checkBodies = new BodyReader(MOST_BODY_BYTES)
  const otherBodies = new BodyReader(MOST_BODY_BYTES)
  return ({ id, tag }, checkKey) => {
    if (tag === 'checks') {
      const inFlightLimit = ENDINGS.has(id) ? endings : checks
      return { inFlightLimit, bodies: checkBodies, needsKey: checkKey, hasRequestId: false, answersAtTurnEnd }
    }
    // A trusted proxy needs no key, and sends the host that its client asked for.
    if (tag === 'proxies') {
      return { inFlightLimit: checks, bodies: checkBodies, needsKey: false, hasRequestId: false, takesAnyHost: true }
    }
    const inFlightLimit = ALWAYS_ANSWERED.has(id) ? undefined : others
    return {
      inFlightLimit,
      bodies: otherBodies,
      needsKey: false,
      hasRequestId: true,
      takesAnyHost: PROBES.has(id),
    }
  }
}
