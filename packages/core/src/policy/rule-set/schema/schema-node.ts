import type { JsonSchema, JsonType } from './rule-set-json-schema.ts'

/** Kinds of values as bits, so that several are compared at once. A whole number is a number as well. */
const TYPE_BITS: Readonly<Record<JsonType | 'null', number>> = {
  object: 1,
  array: 2,
  string: 4,
  number: 8,
  integer: 16,
  boolean: 32,
  null: 64,
}

const ANY_TYPE = 127

/** Keywords that say nothing about what is valid. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  '$ref',
  '$schema',
  '$defs',
  'title',
  'description',
  'examples',
  'default',
])

const KEYWORDS: ReadonlySet<string> = new Set([
  ...ANNOTATIONS,
  ...['type', 'enum', 'const', 'anyOf'],
  ...['properties', 'required', 'additionalProperties', 'propertyNames', 'minProperties', 'dependentRequired'],
  ...['items', 'minItems', 'maxItems', 'uniqueItems'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  ...['pattern', 'minLength', 'maxLength'],
])

/** A schema made ready for checks: references followed, expressions compiled. */
export class SchemaNode {
  readonly schema: JsonSchema
  /** What is expected here, as the rest of a sentence. */
  expected = ''
  /** Which kinds of values may be valid, as bits. */
  types: number = ANY_TYPE
  pattern: RegExp | undefined = undefined
  /** Undefined stands for a property that must be left out. */
  properties: ReadonlyMap<string, SchemaNode | undefined> = new Map()
  /** What holds for properties without a node: any, none, or one for all of them. */
  additional: SchemaNode | boolean = true
  names: SchemaNode | undefined = undefined
  items: SchemaNode | undefined = undefined
  branches: readonly SchemaNode[] = []
  /** The properties with a single allowed value, which discriminate branches. */
  constants: readonly (readonly [name: string, value: unknown])[] = []

  constructor(schema: JsonSchema) {
    this.schema = schema
  }

  /** Whether the kind of a value, as {@link typeBits} says it, may be valid here. */
  admits(bits: number): boolean {
    return (this.types & bits) !== 0
  }
}

/** The kinds that a value is of, as bits; none for what no document can hold. */
export function typeBits(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return TYPE_BITS.string
    case 'boolean':
      return TYPE_BITS.boolean
    case 'number':
      if (Number.isInteger(value)) return TYPE_BITS.integer | TYPE_BITS.number
      return Number.isFinite(value) ? TYPE_BITS.number : 0
    case 'object':
      if (value === null) return TYPE_BITS.null
      return Array.isArray(value) ? TYPE_BITS.array : TYPE_BITS.object
    default:
      return 0
  }
}

/** Makes the nodes of one schema. A keyword that checks do not understand is a mistake of the schema, and thrown. */
export class SchemaNodes {
  readonly #root: JsonSchema
  readonly #nodes = new Map<JsonSchema, SchemaNode>()

  constructor(root: JsonSchema) {
    this.#root = root
  }

  /** The node of the schema that `pointer` names, such as `#/$defs/rule`. */
  at(pointer: string): SchemaNode {
    let place: unknown = this.#root
    for (const name of pointer.split('/').slice(1))
      place = (place as Readonly<Record<string, unknown>> | undefined)?.[name]
    if (typeof place !== 'object' || place === null) throw new Error(`the schema has no ${pointer}`)
    return this.of(place)
  }

  of(schema: JsonSchema): SchemaNode {
    const unknown = Object.keys(schema).find((keyword) => !KEYWORDS.has(keyword))
    if (unknown !== undefined) throw new Error(`checks do not understand the keyword ${unknown}`)
    if (schema.$ref !== undefined) {
      const beside = Object.keys(schema).find((keyword) => !ANNOTATIONS.has(keyword))
      if (beside !== undefined) throw new Error(`checks do not understand ${beside} beside $ref`)
      return this.at(schema.$ref)
    }
    let node = this.#nodes.get(schema)
    if (node === undefined) {
      node = new SchemaNode(schema)
      // Before its parts: a schema may lead back to itself.
      this.#nodes.set(schema, node)
      this.#fill(node)
    }
    return node
  }

  #fill(node: SchemaNode): void {
    const { properties, additionalProperties, propertyNames, items, anyOf, pattern } = node.schema
    node.properties = new Map(
      Object.entries(properties ?? {}).map(([name, part]) => [name, part === false ? undefined : this.of(part)]),
    )
    node.constants = [...node.properties].flatMap(([name, part]) =>
      part?.schema.const === undefined ? [] : [[name, part.schema.const] as const],
    )
    node.additional =
      typeof additionalProperties === 'object' ? this.of(additionalProperties) : additionalProperties !== false
    node.names = propertyNames === undefined ? undefined : this.of(propertyNames)
    node.items = items === undefined ? undefined : this.of(items)
    node.branches = (anyOf ?? []).map((branch) => this.of(branch))
    node.pattern = pattern === undefined ? undefined : new RegExp(pattern, 'u')
    node.types = typesOf(node)
    node.expected = node.schema.title ?? expectationOf(node)
  }
}

function typesOf({ schema, branches }: SchemaNode): number {
  if (schema.type !== undefined) return TYPE_BITS[schema.type]
  if (schema.const !== undefined) return typeBits(schema.const)
  if (schema.enum !== undefined) return TYPE_BITS.string
  if (branches.length === 0) return ANY_TYPE
  return branches.reduce((bits, branch) => bits | branch.types, 0)
}

function expectationOf({ schema, branches }: SchemaNode): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return `one of ${schema.enum.map((word) => JSON.stringify(word)).join(', ')}`
  switch (schema.type) {
    case 'integer':
      return numberExpectation('a whole number', schema)
    case 'number':
      return numberExpectation('a number', schema)
    case 'string':
      return textExpectation(schema)
    case 'boolean':
      return 'true or false'
    case 'array':
      return listExpectation(schema)
    case 'object':
      return (schema.minProperties ?? 0) > 0 ? 'an object with at least one property' : 'an object'
    default:
      return branches.length === 0 ? 'plain data' : branches.map(({ expected }) => expected).join(', or ')
  }
}

function numberExpectation(kind: string, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonSchema): string {
  if (minimum !== undefined && maximum !== undefined) return `${kind} from ${minimum} to ${maximum}`
  const bounds = [
    ...(exclusiveMinimum === undefined ? [] : [`above ${exclusiveMinimum}`]),
    ...(minimum === undefined ? [] : [`${minimum} or more`]),
    ...(exclusiveMaximum === undefined ? [] : [`below ${exclusiveMaximum}`]),
    ...(maximum === undefined ? [] : [`at most ${maximum}`]),
  ]
  return bounds.length === 0 ? kind : `${kind}, ${bounds.join(' and ')}`
}

function textExpectation({ minLength = 0, maxLength }: JsonSchema): string {
  if (maxLength !== undefined) return `a string of ${minLength} to ${maxLength} characters`
  return minLength > 0 ? 'a non-empty string' : 'a string'
}

function listExpectation({ minItems = 0, maxItems }: JsonSchema): string {
  if (maxItems !== undefined) return `a list of ${minItems} to ${maxItems}`
  return minItems > 0 ? 'a list that is not empty' : 'a list'
}

const SHOWN_LENGTH = 60

const SHOWN_PROPERTIES = 8

/** A short, one-line, safe picture of what stands in a document: it may be huge, or hold control characters. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'missing'
  if (typeof value === 'string') {
    return value.length <= SHOWN_LENGTH
      ? JSON.stringify(value)
      : `${JSON.stringify(value.slice(0, SHOWN_LENGTH))}... (${value.length} characters)`
  }
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`
  if (typeof value !== 'object') return `a ${typeof value}`
  const names = Object.keys(value).slice(0, SHOWN_PROPERTIES).map(shortName)
  return names.length === 0 ? 'an object without properties' : `an object with ${names.join(', ')}`
}

function shortName(name: string): string {
  return /^[\w.$-]{1,40}$/.test(name) ? name : JSON.stringify(name.slice(0, 40))
}
