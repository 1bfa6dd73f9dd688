import type { ApiKeyRole } from '../admin/api-key-bodies.ts'
import type { AnswerHeaderName } from '../headers/answer-headers.ts'
import type { JsonSchema, ValueOf } from '../schema/json-schema.ts'
import type { ProblemCode } from '../service/problem.ts'
import { PROBLEM_MEDIA_TYPE, PROBLEMS } from '../service/problem.ts'
import { PROBLEM } from '../service/service-bodies.ts'

/** The least role that the API key must have. `none`: no key is required. */
export type OperationRole = ApiKeyRole

/** HTTP methods of operations. */
export type OperationMethod = 'GET' | 'PUT' | 'POST' | 'DELETE'

/** A path or query parameter. */
export interface OperationParameter {
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly description: string
  /** A string, or a whole number written in decimal digits. */
  readonly schema: JsonSchema
}

/** One of the answers of an operation. */
export interface OperationAnswer {
  readonly description: string
  /** The schema of the body, or of the data of each event of a stream. Absent without a body. */
  readonly schema?: JsonSchema
  /** Media type of the body. Default: `application/json`. */
  readonly mediaType?: string
  readonly headers?: readonly AnswerHeaderName[]
  /** An example body. Default: the example of the schema. */
  readonly example?: unknown
  /** The problems with this status. Absent if the status is not an error. */
  readonly problems?: readonly ProblemCode[]
}

/** An operation of the service: everything that servers, clients and documents need to know about it. */
export interface Operation {
  /** Its name in code and in the OpenAPI document. */
  readonly id: string
  readonly method: OperationMethod
  /** With `{name}` for each path parameter. */
  readonly path: string
  readonly role: OperationRole
  /** A few words. */
  readonly summary: string
  /** Full sentences. */
  readonly description: string
  readonly tag: string
  readonly parameters: Readonly<Record<string, OperationParameter>>
  /** The schema of the required JSON body. Absent without a body. */
  readonly body?: JsonSchema
  /** Maximum size of the body in bytes; 0 without a body. */
  readonly maxBodyBytes: number
  /** By status: at least one below 400, and all problems. */
  readonly answers: Readonly<Record<number, OperationAnswer>>
  /**
   * Whether it supports optimistic locking: reads answer with an `ETag`, changes take `If-Match`, and `PUT` also
   * `If-None-Match`.
   */
  readonly hasEtag: boolean
  /** Whether it is paged: takes `after` and `limit`, and answers with `items` and `next`. */
  readonly isPaged: boolean
  /** Whether it streams until the client or the server ends it. */
  readonly streams: boolean
}

/** Types of an operation, for typed clients and handlers. */
export interface Call {
  /** The path and query parameters, by name. */
  readonly parameters: object
  /** Names of the parameters with a default: optional for clients, always set for handlers. */
  readonly defaults: string
  /** The request body; undefined without one. */
  readonly body: unknown
  /** The body of a successful answer; undefined without one. */
  readonly answer: unknown
}

declare const CALL: unique symbol

/** An operation with its types, which only the compiler uses. */
interface TypedOperation<Id, C> extends Operation {
  readonly id: Id & string
  readonly [CALL]?: C
}

/** Operations by id. */
export type OperationsOf<Calls> = { readonly [Id in keyof Calls]: TypedOperation<Id, Calls[Id]> }

/** Types of operations, by id. */
export type CallsOf<Operations> = {
  readonly [Id in keyof Operations]: Operations[Id] extends TypedOperation<Id, infer C> ? C : never
}

/** The parameters of a call as handlers receive them. */
export type ReceivedParameters<C extends Call> = Omit<C['parameters'], C['defaults']> &
  Required<Pick<C['parameters'], C['defaults'] & keyof C['parameters']>>

/** The definition of an operation; everything else is derived from it. */
interface OperationParts extends Pick<Operation, 'method' | 'path' | 'role' | 'summary' | 'description' | 'answers'> {
  readonly parameters?: Operation['parameters']
  readonly body?: JsonSchema
  /** Default: 16 KiB. */
  readonly maxBodyBytes?: number
  /** Problems in addition to those that follow from body, parameters, role and locking. */
  readonly problems?: readonly ProblemCode[]
  readonly hasEtag?: boolean
  readonly streams?: boolean
}

/** Rejects unknown properties, such as a misspelt `hasEtag`. */
type Known<Parts> = {
  readonly [Id in keyof Parts]: No<Exclude<keyof Parts[Id], keyof OperationParts>> & {
    readonly answers: Parts[Id] extends { readonly answers: infer Answers }
      ? { readonly [Status in keyof Answers]: No<Exclude<keyof Answers[Status], keyof OperationAnswer>> }
      : never
  }
}

type No<Names extends PropertyKey> = { readonly [Name in Names]?: never }

/** The {@link Call} of each operation, inferred from its definition. */
type CallsFrom<Parts> = Parts extends infer All ? { readonly [Id in keyof All]: CallFrom<All[Id]> } : never

type CallFrom<Parts> = Parts extends { readonly answers: infer Answers }
  ? {
      readonly parameters: Parts extends { readonly parameters: infer P } ? ParametersFrom<P> : Record<never, never>
      readonly defaults: Parts extends { readonly parameters: infer P } ? DefaultsFrom<P> : never
      readonly body: Parts extends { readonly body: infer B } ? ValueOf<B> : undefined
      readonly answer: AnswerFrom<Answers[keyof Answers]>
    }
  : never

/** The type of the values of a parameter or answer; never without a schema. */
type ValueFrom<Part> = Part extends { readonly schema: infer S } ? ValueOf<S> : never

/** The bodies of all answers; undefined if none has one. */
type AnswerFrom<Answer> = [ValueFrom<Answer>] extends [never] ? undefined : ValueFrom<Answer>

/** The parameters by name: path parameters and required query parameters are required. */
type ParametersFrom<P> = {
  readonly [Name in keyof P as P[Name] extends { readonly required: true } ? Name : never]: ValueFrom<P[Name]>
} & {
  readonly [Name in keyof P as P[Name] extends { readonly required: false } ? Name : never]?: ValueFrom<P[Name]>
} extends infer Both
  ? { readonly [Name in keyof Both]: Both[Name] }
  : never

/** Names of the parameters with a default. */
type DefaultsFrom<P> = {
  [Name in keyof P]: P[Name] extends { readonly schema: { readonly default: string | number } } ? Name : never
}[keyof P]

/** Default maximum size of a body in bytes. */
const USUAL_BODY_BYTES = 16_384

/** Creates the operations of one tag from their definitions. */
export function operations<const Parts extends Readonly<Record<string, OperationParts>>>(
  tag: string,
  parts: Parts & Known<Parts>,
): OperationsOf<CallsFrom<Parts>> {
  const made = Object.entries<OperationParts>(parts).map(([id, said]) => [id, operation(id, tag, said)])
  return Object.fromEntries(made) as OperationsOf<CallsFrom<Parts>>
}

/** A parameter with the type that the compiler infers. */
interface Parameter<Required extends boolean, S extends JsonSchema> extends OperationParameter {
  readonly required: Required
  readonly schema: S
}

/** An optional query parameter. */
export function query<const S extends JsonSchema>(description: string, schema: S): Parameter<false, S> {
  return { in: 'query', required: false, description, schema }
}

/** A required query parameter. */
export function neededQuery<const S extends JsonSchema>(description: string, schema: S): Parameter<true, S> {
  return { in: 'query', required: true, description, schema }
}

/** A path parameter. */
export function pathPart<const S extends JsonSchema>(description: string, schema: S): Parameter<true, S> {
  return { in: 'path', required: true, description, schema }
}

function operation(id: string, tag: string, said: OperationParts): Operation {
  const { method, path, role, summary, description, body, hasEtag = false, streams = false } = said
  const parameters: Readonly<Record<string, OperationParameter>> = said.parameters ?? {}
  return {
    id,
    method,
    path,
    role,
    summary,
    description,
    tag,
    parameters,
    ...(body === undefined ? {} : { body }),
    maxBodyBytes: body === undefined ? 0 : (said.maxBodyBytes ?? USUAL_BODY_BYTES),
    answers: { ...said.answers, ...problemAnswers([...impliedProblems(said, parameters), ...(said.problems ?? [])]) },
    hasEtag,
    isPaged: Object.hasOwn(parameters, 'after') && Object.hasOwn(parameters, 'limit'),
    streams,
  }
}

const CLOSED_BY_STOP: readonly ProblemCode[] = ['SLUICE_HTTP_CONFIG_UNAVAILABLE', 'SLUICE_HTTP_STORE_UNAVAILABLE']

/** The problems that follow from the form of an operation. */
function impliedProblems(
  { method, path, role, body, hasEtag = false, problems = [] }: OperationParts,
  parameters: Readonly<Record<string, OperationParameter>>,
): readonly ProblemCode[] {
  const codes: ProblemCode[] = []
  if (body !== undefined) {
    codes.push('SLUICE_HTTP_INVALID_JSON', 'SLUICE_HTTP_TOO_LARGE', 'SLUICE_HTTP_UNSUPPORTED_MEDIA_TYPE')
  }
  if (body !== undefined || Object.keys(parameters).length > 0) codes.push('SLUICE_HTTP_INVALID_REQUEST')
  if (role !== 'none') {
    codes.push('SLUICE_HTTP_UNAUTHORIZED', 'SLUICE_HTTP_FORBIDDEN', 'SLUICE_HTTP_TOO_MANY_FAILURES')
    // With a browser session, a change needs a CSRF token.
    if (method !== 'GET') codes.push('SLUICE_HTTP_CSRF')
  }
  if (path.includes('{')) codes.push('SLUICE_HTTP_NOT_FOUND')
  if (hasEtag && method !== 'GET') codes.push('SLUICE_HTTP_PRECONDITION_FAILED')
  // A node that is shutting down closes its stores.
  if (CLOSED_BY_STOP.some((code) => problems.includes(code))) codes.push('SLUICE_HTTP_NOT_READY')
  const writesConfig = method !== 'GET' && problems.includes('SLUICE_HTTP_CONFIG_UNAVAILABLE')
  if (writesConfig) codes.push('SLUICE_HTTP_CONFIG_NOT_WRITABLE')
  return [...codes, 'SLUICE_HTTP_INTERNAL']
}

const PROBLEM_HEADERS: Readonly<Record<number, readonly AnswerHeaderName[]>> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After', 'Cache-Control'],
  503: ['Retry-After', 'Cache-Control'],
  504: ['Cache-Control'],
}

/** One answer for each status of these problems. */
function problemAnswers(codes: readonly ProblemCode[]): Readonly<Record<number, OperationAnswer>> {
  const byStatus = Map.groupBy(new Set(codes), (code) => PROBLEMS[code].status)
  const answers = [...byStatus].map(([status, problems]): [number, OperationAnswer] => {
    const description = problems.map((code) => `${PROBLEMS[code].title} (\`${code}\`).`).join(' ')
    const headers = PROBLEM_HEADERS[status]
    const answer = { description, schema: PROBLEM.ref, mediaType: PROBLEM_MEDIA_TYPE, problems }
    return [status, headers === undefined ? answer : { ...answer, headers }]
  })
  return Object.fromEntries(answers)
}

/** Parameters of a page of a list. */
export const PAGE_PARAMETERS = {
  after: query('The "next" of the previous page. Default: the first page.', {
    type: 'string',
    minLength: 1,
    maxLength: 8192,
  }),
  limit: query('Maximum number of items. Default: 100.', { type: 'integer', minimum: 1, maximum: 1000, default: 100 }),
}

/** The node whose values to return. */
export const NODE_PARAMETER = {
  node: query('Only this node, by id or name; self for the one that answers. Default: all nodes together.', {
    type: 'string',
    minLength: 1,
    maxLength: 300,
  }),
}
