import type { ForeignSchemaName } from './admin/rule-set-types.ts'
import { ANSWER_HEADERS } from './headers/answer-headers.ts'
import type { Operation, OperationAnswer, OperationParameter } from './operations/operation.ts'
import { OPERATIONS } from './operations/operation-table.ts'
import type { JsonSchema } from './schema/json-schema.ts'
import { definedSchemas } from './schema/json-schema.ts'
import type { ProblemCode } from './service/problem.ts'
import { PROBLEMS } from './service/problem.ts'
import { problemDocument } from './service/problem-document.ts'

/** What the document is made of besides the table of operations. */
export interface OpenApiOptions {
  /** Version of the service. */
  readonly version: string
  /**
   * The schemas of rule sets and live entries, which the rule engine has, and whatever those refer to. They refer to
   * each other by `#/components/schemas/<name>`; `componentsOf` makes them out of a schema with definitions.
   */
  readonly components: Readonly<Record<ForeignSchemaName, object>> & Readonly<Record<string, object>>
}

/** An OpenAPI 3.1 document. */
export interface OpenApiDocument {
  readonly openapi: '3.1.0'
  readonly info: object
  readonly tags: readonly object[]
  /** By path, then by method in small letters. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>
    /** The answers to problems, which many operations share. */
    readonly responses: Readonly<Record<string, object>>
    readonly headers: Readonly<Record<string, object>>
    readonly securitySchemes: Readonly<Record<string, object>>
  }
}

/**
 * Every schema of this package by its name: JSON Schema, draft 2020-12. They refer to each other by name. The import of
 * the operation table defines all that an operation uses.
 */
export const SCHEMAS: Readonly<Record<string, JsonSchema>> = definedSchemas()

type Schemas = Readonly<Record<string, object>>

const TAGS: readonly { readonly name: string; readonly description: string }[] = [
  { name: 'checks', description: 'What gateways and services ask before they do something.' },
  { name: 'proxies', description: 'What reverse proxies ask before they pass a request on.' },
  { name: 'service', description: 'What tells about the service itself, and unique ids.' },
  { name: 'rules', description: 'The rules that are enforced, and what they have counted.' },
  { name: 'callers', description: 'What holds for single callers: overrides, tiers, blocks.' },
  { name: 'versions', description: 'Versions of the rule set: drafts, careful roll-out, and the way back.' },
  { name: 'keys', description: 'Who may use the admin API.' },
  { name: 'sessions', description: 'Signing in to the dashboard.' },
  { name: 'monitoring', description: 'What happens, and why.' },
  { name: 'alerts', description: 'What somebody should look at.' },
]

const IF_MATCH = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'The ETag that the change is based on. Answers 412 when it has changed since. "0" means that nothing exists ' +
    'yet. Default: any.',
  schema: { type: 'string', pattern: '^(?:\\*|"[0-9]+")$' },
  example: '"12"',
}

const IF_NONE_MATCH = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'Makes the change only when nothing exists yet. Answers 412 otherwise.',
  schema: { const: '*' },
  example: '*',
}

/**
 * The OpenAPI 3.1 document of the service: every operation of the table with its parameters, bodies, answers and
 * problems. The role that an operation needs stands in its security requirement.
 */
export function openApiDocument({ version, components }: OpenApiOptions): OpenApiDocument {
  const taken = Object.keys(components).find((name) => Object.hasOwn(SCHEMAS, name))
  if (taken !== undefined)
    throw new Error(`the contract has a schema "${taken}" of its own; give the component another name`)
  const schemas: Schemas = {
    ...SCHEMAS,
    ResourceRule: {
      ...withoutResource(components.PolicyRule),
      title: 'a rule such as { dimension: "user", limit: 100, window: "1m" }',
    },
    TierRequest: withOptionalName(components.Tier, { multiplier: 10, burst: 100 }),
    ExemptionRequest: withOptionalName(components.Exemption, { match: { resource: '/health' } }),
    DenyEntryRequest: withOptionalName(components.DenyEntry, { match: { cidrs: ['192.0.2.0/24'] } }),
    ...components,
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version,
      description:
        'Limits how often something may happen. Errors are problem documents (RFC 9457). The admin API asks for an ' +
        'API key, sent as "Authorization: Bearer slk_...".',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    tags: TAGS,
    paths: pathsOf(schemas),
    components: {
      schemas,
      responses: sharedResponses(schemas),
      headers: ANSWER_HEADERS,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API key, slk_<id>_<secret>. Its role must be the one that an operation names, or one above it. ' +
            'A browser that signed in at POST /auth/session sends its cookie instead, and X-CSRF-Token with changes.',
        },
      },
    },
  }
}

function pathsOf(schemas: Schemas): OpenApiDocument['paths'] {
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of Object.values<Operation>(OPERATIONS)) {
    paths[operation.path] ??= {}
    paths[operation.path]![operation.method.toLowerCase()] = operationObject(operation, schemas)
  }
  return paths
}

function operationObject(operation: Operation, schemas: Schemas): object {
  const { id, method, role, tag, summary, description, parameters, body, maxBodyBytes, answers, hasEtag } = operation
  const listed = [
    ...Object.entries(parameters).map(([name, parameter]) => parameterObject(name, parameter)),
    ...(hasEtag && method !== 'GET' ? [IF_MATCH] : []),
    ...(hasEtag && method === 'PUT' ? [IF_NONE_MATCH] : []),
  ]
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: role === 'none' ? [] : [{ bearer: [role] }],
    ...(listed.length === 0 ? {} : { parameters: listed }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            description: `At most ${maxBodyBytes} bytes.`,
            required: true,
            content: { 'application/json': mediaObject(body, exampleOf(body, schemas)) },
          },
        }),
    responses: Object.fromEntries(
      Object.entries(answers).map(([status, answer]) => [status, answerObject(answer, operation, schemas)]),
    ),
  }
}

function parameterObject(name: string, { in: place, required, description, schema }: OperationParameter): object {
  return { name, in: place, required, description, schema }
}

/** The answers to problems, each under the name of its problems. */
function sharedResponses(schemas: Schemas): Record<string, object> {
  const answers = Object.values<Operation>(OPERATIONS).flatMap((operation) => Object.values(operation.answers))
  return Object.fromEntries(
    answers.flatMap((answer) => {
      const { problems } = answer
      return problems === undefined
        ? []
        : [[sharedName(problems), responseObject(answer, answerExample(answer, schemas))]]
    }),
  )
}

/** Such as `InvalidJsonOrInvalidRequest`. */
function sharedName(problems: readonly ProblemCode[]): string {
  const words = (code: ProblemCode): string =>
    PROBLEMS[code].name.replace(/(?:^|-)(\w)/g, (_, first: string) => first.toUpperCase())
  return problems.map(words).join('Or')
}

function answerObject(answer: OperationAnswer, { streams }: Operation, schemas: Schemas): object {
  if (answer.problems !== undefined) return { $ref: `#/components/responses/${sharedName(answer.problems)}` }
  return responseObject(answer, streams ? undefined : answerExample(answer, schemas))
}

function responseObject(answer: OperationAnswer, example: unknown): object {
  const { description, schema, mediaType = 'application/json', headers = [] } = answer
  const references = headers.map((name) => [name, { $ref: `#/components/headers/${name}` }])
  return {
    description,
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(references) }),
    ...(schema === undefined ? {} : { content: { [mediaType]: mediaObject(schema, example) } }),
  }
}

function mediaObject(schema: JsonSchema, example: unknown): object {
  return example === undefined ? { schema } : { schema, example }
}

function answerExample(answer: OperationAnswer, schemas: Schemas): unknown {
  const [problem] = answer.problems ?? []
  if (problem !== undefined) return problemDocument(problem, { detail: `${PROBLEMS[problem].title}.` })
  return answer.example ?? exampleOf(answer.schema, schemas)
}

/** The first example of the schema that is referred to. */
function exampleOf(schema: JsonSchema | undefined, schemas: Schemas): unknown {
  const name = schema?.$ref?.replace('#/components/schemas/', '') ?? ''
  return (schemas[name] as JsonSchema | undefined)?.examples?.[0]
}

/** The schema of rules for one resource: that of all rules, without `resource`. */
/** The schema of a named part, for a request whose path has the name. */
function withOptionalName(part: object, example: object): object {
  const { required = [], ...rest } = part as JsonSchema
  return { ...rest, required: required.filter((name) => name !== 'name'), examples: [example] }
}

function withoutResource(rule: object): object {
  const { properties, required, anyOf, examples, ...rest } = rule as JsonSchema
  return {
    ...rest,
    ...(properties === undefined ? {} : { properties: omitResource(properties) }),
    ...(required === undefined ? {} : { required: required.filter((name) => name !== 'resource') }),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(withoutResource) }),
    ...(examples === undefined ? {} : { examples: examples.map((example) => omitResource(example as object)) }),
  }
}

function omitResource(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== 'resource'))
}

/** A JSON Schema with definitions of its own. */
export interface SchemaWithDefinitions {
  readonly $schema?: string
  readonly $defs?: Readonly<Record<string, object>>
}

/** How the parts of a schema are to be called. */
export interface ComponentNames {
  /** The schema as a whole. */
  readonly root: string
  /** Names for definitions; others are called as they are, with a capital. */
  readonly definitions?: Readonly<Record<string, string>>
}

/**
 * The parts of a schema as components of an OpenAPI document: the whole without its definitions, and each definition.
 * They refer to each other by their new names.
 */
export function componentsOf(
  { $schema: _dialect, $defs = {}, ...root }: SchemaWithDefinitions,
  names: ComponentNames,
): Record<string, object> {
  const nameOf = (definition: string): string =>
    names.definitions?.[definition] ?? definition.charAt(0).toUpperCase() + definition.slice(1)
  const moved = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(moved)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, part]) => [key, key === '$ref' ? movedReference(part) : moved(part)]),
    )
  }
  const movedReference = (reference: unknown): unknown =>
    String(reference).replace(
      /^#\/\$defs\/([^/]+)/,
      (_, definition: string) => `#/components/schemas/${nameOf(definition)}`,
    )
  const definitions = Object.entries($defs).map(([definition, schema]) => [nameOf(definition), moved(schema)])
  return { [names.root]: moved(root) as object, ...Object.fromEntries(definitions) }
}
