import type { FieldProblem, Operation, OperationParameter } from '@sluice/contract'
import type { JsonSchema } from '@sluice/core/internal'
import { SchemaCheck } from '@sluice/core/internal'
import type { InFlight } from '@sluice/runtime'
import { admittedTo, withinTenant } from '../../auth/tenant-scope.ts'
import type {
  Answer,
  OperationHandler,
  OperationHandlers,
  OperationRequest,
  Principal,
} from '../../operations/handler.ts'
import { invalidRequestAnswer } from '../../operations/problems.ts'
import type { Endpoint } from './endpoint.ts'
import { oversizedPart } from './json-body.ts'
import type { BodyReader } from './request-body.ts'
import type { Route } from './router.ts'

/** What the endpoints of operations are made with. */
export interface EndpointParts {
  readonly operations: readonly Operation[]
  /** Operations without one are not answered; a handler without an operation is a mistake, and thrown. */
  readonly handlers: OperationHandlers
  /** The schemas that those of the operations refer to as `#/components/schemas/<name>`. */
  readonly components: Readonly<Record<string, unknown>>
  /** Who asks, when the key is good for `role`. */
  readonly authenticate: (request: OperationRequest, role: Operation['role']) => Principal | Answer
  /** Says how operations are dealt with beyond what the table of operations tells. */
  readonly treatmentOf: (operation: Operation) => Treatment
}

/** How an operation is dealt with. */
export interface Treatment {
  /** Bounds how many of its requests are under way; undefined for those that must be answered whatever is going on. */
  readonly inFlightLimit: InFlight | undefined
  /** Reads its bodies. */
  readonly bodies: BodyReader
  /** Whether any valid key is asked for although the operation needs none. */
  readonly needsKey: boolean
  /** Whether its handler checks its body itself, and the parameters it has; what it has none of is refused all the same. */
  readonly checksItself: boolean
  readonly hasRequestId: boolean
  /** See {@link Endpoint}, here and below. */
  readonly takesAnyHost?: boolean
  readonly answersAtTurnEnd?: boolean
}

/** The routes of all operations that have a handler. */
export function operationRoutes(parts: EndpointParts): readonly Route<Endpoint>[] {
  const check = new SchemaCheck({ components: { schemas: parts.components } } as JsonSchema)
  const names = new Set(parts.operations.map(nameOf))
  const unknown = Object.keys(parts.handlers).filter((name) => !names.has(name))
  if (unknown.length > 0) throw new Error(`there are no operations for the handlers ${unknown.join(', ')}`)
  return parts.operations.flatMap((operation) => {
    const handle = parts.handlers[nameOf(operation)]
    if (handle === undefined) return []
    const { path, method } = operation
    return [{ path, method, target: endpointOf(operation, handle, { ...parts, check }) }]
  })
}

function nameOf({ method, path }: Operation): string {
  return `${method} ${path}`
}

function endpointOf(
  operation: Operation,
  handle: OperationHandler,
  { check, treatmentOf, authenticate }: EndpointParts & { readonly check: SchemaCheck },
): Endpoint {
  const {
    inFlightLimit,
    bodies,
    needsKey,
    checksItself,
    hasRequestId,
    answersAtTurnEnd = false,
    takesAnyHost = false,
  } = treatmentOf(operation)
  const { role, body, maxBodyBytes } = operation
  const isOpen = role === 'none' && !needsKey
  return {
    name: nameOf(operation),
    inFlightLimit,
    admit: isOpen ? undefined : (request) => admittedTo(operation, authenticate(request, role)),
    rejectParameters: checksItself ? queryCheck(operation) : parameterCheck(operation),
    body:
      body === undefined
        ? undefined
        : {
            maxBytes: maxBodyBytes,
            reader: bodies,
            problemsOf: checksItself ? undefined : bodyCheck(check, body.$ref!),
          },
    handle: isOpen ? handle : withinTenant(operation, handle),
    hasRequestId,
    answersAtTurnEnd,
    takesAnyHost,
  }
}

function bodyCheck(check: SchemaCheck, part: string): (value: unknown) => readonly FieldProblem[] {
  // A schema that cannot be checked by is a mistake to find now, and not with the first request.
  check.problemsOf(undefined, part)
  return (value) => {
    const oversized = oversizedPart(value)
    return oversized === undefined ? check.problemsOf(value, part) : [oversized]
  }
}

/** Undefined where any query is taken: an operation without parameters that everybody may call, such as a health check. */
function parameterCheck({ parameters, role }: Operation): Endpoint['rejectParameters'] {
  const declared = Object.entries(parameters)
  if (declared.length === 0 && role === 'none') return undefined
  const queries = new Map(declared.filter(([, { in: place }]) => place === 'query'))
  const check = new SchemaCheck({ type: 'object', properties: Object.fromEntries(declared.map(schemaOf)) })
  return ({ params, query }) => {
    const problems = [
      ...queryProblems(queries, query),
      ...check
        .problemsOf({ ...readable(query, queries), ...numbersIn(params, parameters) })
        .map(({ path, ...problem }) => ({ ...problem, path: `?${path.slice(1)}` })),
    ]
    return problems.length === 0 ? undefined : invalidRequestAnswer(problems)
  }
}

/** For operations that are asked tens of thousands of times in a second, and next to never with a query. */
function queryCheck({ parameters }: Operation): Endpoint['rejectParameters'] {
  const queries = new Map(Object.entries(parameters).filter(([, { in: place }]) => place === 'query'))
  return (request) => {
    if (!request.hasQuery) return undefined
    const problems = queryProblems(queries, request.query)
    return problems.length === 0 ? undefined : invalidRequestAnswer(problems)
  }
}

function schemaOf([name, { schema }]: [string, OperationParameter]): [string, JsonSchema] {
  return [name, schema as JsonSchema]
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

function readable(
  query: URLSearchParams,
  declared: ReadonlyMap<string, OperationParameter>,
): Readonly<Record<string, unknown>> {
  const given = [...query].filter(([name]) => declared.has(name))
  return numbersIn(Object.fromEntries(given), Object.fromEntries(declared))
}

/** Texts that stand for numbers as numbers, so that they can be checked as such. */
function numbersIn(
  values: Readonly<Record<string, string>>,
  declared: Readonly<Record<string, OperationParameter>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(values).map(([name, text]) => {
      const isNumber = declared[name]?.schema.type === 'integer' && /^-?\d{1,15}$/.test(text)
      return [name, isNumber ? Number(text) : text]
    }),
  )
}

function shortened(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}...` : name.toWellFormed()
}
