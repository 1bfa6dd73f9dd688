import type { ApiKeyRole } from '../admin/api-key-bodies.ts'
import type { AnswerHeaderName } from '../headers/answer-headers.ts'
import type { JsonSchema, ValueOf } from '../schema/json-schema.ts'
import type { ProblemCode } from '../service/problem.ts'
import { PROBLEM_MEDIA_TYPE, PROBLEMS } from '../service/problem.ts'
import { PROBLEM } from '../service/service-bodies.ts'

/** The role that an API key needs, or a higher one. `none`: no key is required. */
export type OperationRole = ApiKeyRole

/** The methods that operations have. */
export type OperationMethod = 'GET' | 'PUT' | 'POST' | 'DELETE'

/** A parameter of the path or the query. */
export interface OperationParameter {
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly description: string
  /** A text, or a whole number written in decimal digits. */
  readonly schema: JsonSchema
}

/** One of the answers of an operation. */
export interface OperationAnswer {
  readonly description: string
  /** The schema of the body, or of the data of each event of a stream; left out where there is no body. */
  readonly schema?: JsonSchema
  /** Media type of the body. Default: `application/json`. */
  readonly mediaType?: string
  readonly headers?: readonly AnswerHeaderName[]
  /** A body of this answer. Default: an example of the schema. */
  readonly example?: unknown
  /** The problems that are answered so; left out where it is no problem. */
  readonly problems?: readonly ProblemCode[]
}

/** Something that the service does: everything that servers, clients and documents need to know about it. */
export interface Operation {
  /** Names it in code and in the OpenAPI document. */
  readonly id: string
  readonly method: OperationMethod
  /** With `{name}` for each parameter of the path. */
  readonly path: string
  readonly role: OperationRole
  /** A few words. */
  readonly summary: string
  /** What it does, in sentences. */
  readonly description: string
  readonly tag: string
  readonly parameters: Readonly<Record<string, OperationParameter>>
  /** The schema of the body, which is JSON and must be there; left out where there is none. */
  readonly body?: JsonSchema
  /** Most bytes of a body; 0 where there is none. */
  readonly maxBodyBytes: number
  /** By status: at least one below 400, and all problems that it may answer with. */
  readonly answers: Readonly<Record<number, OperationAnswer>>
  /**
   * Whether it takes part in optimistic locking: reads answer with an `ETag`, changes take `If-Match`, and `PUT` also
   * `If-None-Match`.
   */
  readonly hasEtag: boolean
  /** Whether it answers with a page: takes `after` and `limit`, and answers with `items` and `next`. */
  readonly isPaged: boolean
  /** Whether its answer goes on until somebody ends it. */
  readonly streams: boolean
}

/** What goes in and out of an operation, for typed clients and handlers. */
export interface Call {
  /** The parameters of path and query, by name. */
  readonly parameters: object
  /** The names of the parameters that have a default: clients may leave them out, handlers always receive them. */
  readonly defaults: string
  /** The body; undefined where there is none. */
  readonly body: unknown
  /** The body of the answer when it went well; undefined where there is none. */
  readonly answer: unknown
}

declare const CALL: unique symbol

/** An operation with what goes in and out of it, which only the compiler sees. */
interface TypedOperation<Id, C> extends Operation {
  readonly id: Id & string
  readonly [CALL]?: C
}

/** Operations by their ids. */
export type OperationsOf<Calls> = { readonly [Id in keyof Calls]: TypedOperation<Id, Calls[Id]> }

/** What goes in and out of operations, by their ids. */
export type CallsOf<Operations> = {
  readonly [Id in keyof Operations]: Operations[Id] extends TypedOperation<Id, infer C> ? C : never
}

/** The parameters of a call as handlers receive them. */
export type ReceivedParameters<C extends Call> = Omit<C['parameters'], C['defaults']> &
  Required<Pick<C['parameters'], C['defaults'] & keyof C['parameters']>>

/** What is said about an operation; the rest follows from it. */
interface OperationParts extends Pick<Operation, 'method' | 'path' | 'role' | 'summary' | 'description' | 'answers'> {
  readonly parameters?: Operation['parameters']
  readonly body?: JsonSchema
  /** Default: 16 KiB. */
  readonly maxBodyBytes?: number
  /** Problems besides those that follow from body, parameters, role and locking. */
  readonly problems?: readonly ProblemCode[]
  readonly hasEtag?: boolean
  readonly streams?: boolean
}

/** Rejects what operations and answers do not have, such as a misspelt `hasEtag`. */
type Known<Parts> = {
  readonly [Id in keyof Parts]: No<Exclude<keyof Parts[Id], keyof OperationParts>> & {
    readonly answers: Parts[Id] extends { readonly answers: infer Answers }
      ? { readonly [Status in keyof Answers]: No<Exclude<keyof Answers[Status], keyof OperationAnswer>> }
      : never
  }
}

type No<Names extends PropertyKey> = { readonly [Name in Names]?: never }

/** The {@link Call} of each operation, inferred from what is said about it. */
type CallsFrom<Parts> = Parts extends infer All ? { readonly [Id in keyof All]: CallFrom<All[Id]> } : never

type CallFrom<Parts> = Parts extends { readonly answers: infer Answers }
  ? {
      readonly parameters: Parts extends { readonly parameters: infer P } ? ParametersFrom<P> : Record<never, never>
      readonly defaults: Parts extends { readonly parameters: infer P } ? DefaultsFrom<P> : never
      readonly body: Parts extends { readonly body: infer B } ? ValueOf<B> : undefined
      readonly answer: AnswerFrom<Answers[keyof Answers]>
    }
  : never

/** The values of a parameter or answer; never where it has no schema. */
type ValueFrom<Part> = Part extends { readonly schema: infer S } ? ValueOf<S> : never

/** The bodies of all answers; undefined where none has one. */
type AnswerFrom<Answer> = [ValueFrom<Answer>] extends [never] ? undefined : ValueFrom<Answer>

/** The parameters by name: those of the path, and of the query those that must be there, are required. */
type ParametersFrom<P> = {
  readonly [Name in keyof P as P[Name] extends { readonly required: true } ? Name : never]: ValueFrom<P[Name]>
} & {
  readonly [Name in keyof P as P[Name] extends { readonly required: false } ? Name : never]?: ValueFrom<P[Name]>
} extends infer Both
  ? { readonly [Name in keyof Both]: Both[Name] }
  : never

/** The names of the parameters that have a default. */
type DefaultsFrom<P> = {
  [Name in keyof P]: P[Name] extends { readonly schema: { readonly default: string | number } } ? Name : never
}[keyof P]

/** Bytes that the bodies of most operations fit into. */
const USUAL_BODY_BYTES = 16_384

/** Makes operations of one tag out of what is said about each. */
export function operations<const Parts extends Readonly<Record<string, OperationParts>>>(
  tag: string,
  parts: Parts & Known<Parts>,
): OperationsOf<CallsFrom<Parts>> {
  const made = Object.entries<OperationParts>(parts).map(([id, said]) => [id, operation(id, tag, said)])
  return Object.fromEntries(made) as OperationsOf<CallsFrom<Parts>>
}

/** A parameter with what the compiler infers its type from. */
interface Parameter<Required extends boolean, S extends JsonSchema> extends OperationParameter {
  readonly required: Required
  readonly schema: S
}

/** A parameter of the query that may be left out. */
export function query<const S extends JsonSchema>(description: string, schema: S): Parameter<false, S> {
  return { in: 'query', required: false, description, schema }
}

/** A parameter of the query that must be there. */
export function neededQuery<const S extends JsonSchema>(description: string, schema: S): Parameter<true, S> {
  return { in: 'query', required: true, description, schema }
}

/** A parameter of the path. */
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
    // With the session of a browser, a change needs a token.
    if (method !== 'GET') codes.push('SLUICE_HTTP_CSRF')
  }
  if (path.includes('{')) codes.push('SLUICE_HTTP_NOT_FOUND')
  if (hasEtag && method !== 'GET') codes.push('SLUICE_HTTP_PRECONDITION_FAILED')
  // A node that is about to stop closes its stores.
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

/** One answer for each status that these problems have. */
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

/** Which page of a list. */
export const PAGE_PARAMETERS = {
  after: query('The "next" of the previous page. Default: the first page.', {
    type: 'string',
    minLength: 1,
    maxLength: 8192,
  }),
  limit: query('Maximum number of items. Default: 100.', { type: 'integer', minimum: 1, maximum: 1000, default: 100 }),
}

/** Which node figures are of. */
export const NODE_PARAMETER = {
  node: query('Only this node, by id or name; self for the one that answers. Default: all nodes together.', {
    type: 'string',
    minLength: 1,
    maxLength: 300,
  }),
}
