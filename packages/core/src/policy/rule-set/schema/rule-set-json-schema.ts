/** A kind of value in a document. */
export type JsonType = 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean'

/**
 * The part of JSON Schema (draft 2020-12) that {@link SchemaCheck} understands. Alternatives are `anyOf`; those that
 * exclude each other say so by `const` or by `false` for a property.
 */
export interface JsonSchema {
  readonly $schema?: string
  /** `#/...` in the same schema; only annotations may stand beside it. */
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, JsonSchema>>

  /** What is expected, as the rest of a sentence: `a duration such as "1m"`. Default: made of the other keywords. */
  readonly title?: string
  readonly description?: string
  readonly examples?: readonly unknown[]
  readonly default?: unknown

  readonly type?: JsonType
  readonly enum?: readonly string[]
  readonly const?: string | number | boolean
  readonly anyOf?: readonly JsonSchema[]

  /** `false`: must be left out. */
  readonly properties?: Readonly<Record<string, JsonSchema | false>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly propertyNames?: JsonSchema
  readonly minProperties?: number
  /** With the property, these are required. */
  readonly dependentRequired?: Readonly<Record<string, readonly string[]>>

  readonly items?: JsonSchema
  readonly minItems?: number
  readonly maxItems?: number
  /** Only for lists of strings and numbers. */
  readonly uniqueItems?: boolean

  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number

  /** Needs a `title`: a regular expression is no explanation. */
  readonly pattern?: string
  /** In code points. */
  readonly minLength?: number
  readonly maxLength?: number
}
