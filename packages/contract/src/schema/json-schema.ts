/** A kind of value in a JSON document. */
export type JsonType = 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'null'

/** The part of JSON Schema (draft 2020-12) that this contract is written in. */
export interface JsonSchema {
  /** `#/components/schemas/<name>`; only annotations stand beside it. */
  readonly $ref?: string
  /** What is expected, as the rest of a sentence: `a duration such as "1m"`. */
  readonly title?: string
  readonly description?: string
  readonly examples?: readonly unknown[]
  /** What a parameter of the query is when it is left out. */
  readonly default?: string | number

  /** Only answers have a list of two, the second of them `null`. */
  readonly type?: JsonType | readonly JsonType[]
  readonly enum?: readonly string[]
  readonly const?: string | number | boolean
  readonly anyOf?: readonly JsonSchema[]

  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly propertyNames?: JsonSchema
  readonly minProperties?: number
  readonly maxProperties?: number

  readonly items?: JsonSchema
  readonly minItems?: number
  readonly maxItems?: number

  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number

  readonly pattern?: string
  /** In code points. */
  readonly minLength?: number
  readonly maxLength?: number
}

declare const SHAPE: unique symbol

declare const CHOICES: unique symbol

/** Exactly the values of `V`: a list that lacks one, or has another, is of another type. */
export type Choices<V extends string> = readonly V[] & { readonly [CHOICES]: (value: V) => V }

/**
 * The values of an enumeration. The compiler compares them with the type that the schema is for, in both directions.
 */
/* @__NO_SIDE_EFFECTS__ */
export function choices<const V extends string>(...values: readonly V[]): Choices<V> {
  return values as Choices<V>
}

/** A reference to the schema of `T`. Which type that is, only the compiler knows. */
export interface Reference<T> {
  readonly $ref: string
  readonly description?: string
  readonly [SHAPE]?: T
}

/** The schema of `T` under a name of its own, by which others refer to it. */
export interface NamedSchema<T> {
  readonly name: string
  readonly schema: JsonSchema
  readonly ref: Reference<T>
}

/** What `type` says where values are of type `V`. */
type TypeOf<V> = [V] extends [string]
  ? 'string'
  : [V] extends [number]
    ? 'integer' | 'number'
    : [V] extends [boolean]
      ? 'boolean'
      : [V] extends [readonly unknown[]]
        ? 'array'
        : [V] extends [object]
          ? 'object'
          : null extends V
            ? readonly [TypeOf<NonNullable<V>>, 'null']
            : never

/** What `enum` says where values are of type `V`: all values of a union of texts, and anything elsewhere. */
type ChoicesOf<V> = [V] extends [string] ? (string extends V ? readonly string[] : Choices<V>) : readonly string[]

/** A schema for values of type `V`, as far as the compiler can tell. */
export type PropertySchema<V> = Omit<JsonSchema, 'type' | 'enum'> & {
  readonly type?: TypeOf<Exclude<V, undefined>>
  readonly enum?: ChoicesOf<V>
  readonly [SHAPE]?: V
}

/** The schema of a list of `V`. */
export interface ListSchema<V> extends Omit<JsonSchema, 'type'> {
  readonly type: 'array'
  readonly [SHAPE]?: readonly V[]
}

/** The schema of what stands in a list of `V`. */
export type ItemSchema<V> = JsonSchema & { readonly [SHAPE]?: V }

/** The names of the properties that every `T` has. */
type RequiredKeys<T> = { [K in keyof T]-?: object extends Pick<T, K> ? never : K }[keyof T]

type OptionalKeys<T> = Exclude<keyof T, RequiredKeys<T>>

type PropertySchemas<T, Keys extends keyof T> = {
  readonly [K in Keys]-?: PropertySchema<Required<T>[K]>
}

/**
 * The parts that the schema of an object type is made of: one schema for each property, under `required` or `optional`
 * as the type has it. The compiler rejects a property that the type does not have, one that is missing, and one in the
 * wrong group.
 */
export type ObjectParts<T> = {
  readonly title?: string
  readonly description: string
  readonly examples: readonly [T, ...T[]]
  readonly required: PropertySchemas<T, RequiredKeys<T>>
  /** Minimum number of properties. */
  readonly minProperties?: number
} & ([OptionalKeys<T>] extends [never]
  ? { readonly optional?: undefined }
  : { readonly optional: PropertySchemas<T, OptionalKeys<T>> })

/** The schema of what clients send: properties that it does not name are rejected. */
export function requestSchema<T extends object>(name: string, parts: ObjectParts<NoInfer<T>>): NamedSchema<T> {
  return define(name, { ...objectSchema(parts), additionalProperties: false })
}

/** The schema of what the service sends: clients read past properties that it does not name. */
export function answerSchema<T extends object>(name: string, parts: ObjectParts<NoInfer<T>>): NamedSchema<T> {
  return define(name, objectSchema(parts))
}

/** A reference to the schema called `name` in the OpenAPI document. */
export function referenceTo<T>(name: string): Reference<T> {
  return { $ref: `#/components/schemas/${name}` }
}

const defined = new Map<string, JsonSchema>()

/**
 * Every schema that {@link requestSchema} and {@link answerSchema} have defined, in alphabetical order of their names.
 */
export function definedSchemas(): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries([...defined].sort(([one], [other]) => (one < other ? -1 : 1)))
}

function define<T>(name: string, schema: JsonSchema): NamedSchema<T> {
  if (defined.has(name)) throw new Error(`there are two schemas "${name}"; give one another name`)
  defined.set(name, schema)
  return { name, schema, ref: referenceTo(name) }
}

function objectSchema<T extends object>(parts: ObjectParts<T>): JsonSchema {
  const { title, description, examples, required, optional, minProperties } = parts
  return {
    ...(title === undefined ? {} : { title }),
    description,
    examples,
    type: 'object',
    properties: { ...required, ...optional } as Readonly<Record<string, JsonSchema>>,
    ...(Object.keys(required).length === 0 ? {} : { required: Object.keys(required) }),
    ...(minProperties === undefined ? {} : { minProperties }),
  }
}
