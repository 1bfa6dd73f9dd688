/** A kind of value in a JSON document. */
export type JsonType = keyof JsonValues

/** The type of the values of each kind. */
interface JsonValues {
  readonly object: object
  readonly array: readonly unknown[]
  readonly string: string
  readonly number: number
  readonly integer: number
  readonly boolean: boolean
  readonly null: null
}

/** The subset of JSON Schema (draft 2020-12) that this contract uses. */
export interface JsonSchema {
  /** `#/components/schemas/<name>`; only annotations are allowed next to it. */
  readonly $ref?: string
  /** Description for messages, as the rest of a sentence: `a duration such as "1m"`. */
  readonly title?: string
  readonly description?: string
  readonly examples?: readonly unknown[]
  /** Default of a query parameter. */
  readonly default?: string | number

  /** Only answers have two types, the second of them `null`. */
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

declare const VALUE: unique symbol

/** A schema of values of type `T` that cannot be inferred from the schema. Only the compiler uses it. */
export interface TypedSchema<in out T> extends JsonSchema {
  readonly [VALUE]: (value: T) => T
}

/** A reference to the schema of `T`. */
export interface Reference<in out T> extends TypedSchema<T> {
  readonly $ref: string
}

/** The schema of `T` with a name for references. */
export interface NamedSchema<in out T, Name extends string = string> {
  readonly name: Name
  readonly schema: JsonSchema
  readonly ref: Reference<T>
  /** The first of its examples. */
  readonly example: T
}

/** The type of the bodies that a schema describes: `interface Counter extends Infer<typeof COUNTER> {}`. */
export type Infer<S> = S extends NamedSchema<infer T> ? T : never

/** The type of the values of a schema. Bounds, patterns and lengths are not part of it. */
export type ValueOf<S> =
  S extends TypedSchema<infer T>
    ? T
    : S extends { readonly enum: readonly (infer V)[] }
      ? V
      : S extends { readonly const: infer V }
        ? V
        : S extends { readonly anyOf: readonly (infer V)[] }
          ? ValueOf<V>
          : S extends { readonly type: 'array'; readonly items: infer V }
            ? readonly ValueOf<V>[]
            : S extends { readonly type: 'object'; readonly additionalProperties: infer V extends object }
              ? Readonly<Record<string, ValueOf<V>>>
              : S extends { readonly type: infer T }
                ? JsonValues[(T extends readonly (infer One)[] ? One : T) & JsonType]
                : unknown

type Properties = Readonly<Record<string, JsonSchema>>

type Nothing = Readonly<Record<never, never>>

/** Objects with the required properties `R` and the optional properties `O`. */
type ObjectOf<R, O> = {
  readonly [K in keyof R]: ValueOf<R[K]>
} & {
  readonly [K in keyof O]?: ValueOf<O[K]>
} extends infer Both
  ? { readonly [K in keyof Both]: Both[K] }
  : never

/** Rejects unknown keywords, such as a misspelt `minimum`. */
type Known<P> = {
  readonly [K in keyof P]: { readonly [Keyword in Exclude<keyof P[K], keyof TypedSchema<unknown>>]?: never }
}

/** Parts of the schema of an object: one schema for each property. */
export interface ObjectParts<R, O> {
  readonly description: string
  readonly examples: readonly [ObjectOf<NoInfer<R>, NoInfer<O>>, ...ObjectOf<NoInfer<R>, NoInfer<O>>[]]
  /** Required properties. */
  readonly required?: R & Known<R>
  /** Optional properties. */
  readonly optional?: O & Known<O>
}

/** The schema of what clients send: unknown properties are rejected. */
export function requestSchema<
  const Name extends string,
  const R extends Properties = Nothing,
  const O extends Properties = Nothing,
>(name: Name, parts: ObjectParts<R, O>): NamedSchema<ObjectOf<R, O>, Name> {
  return define(name, { ...objectSchema(parts), additionalProperties: false })
}

/** The schema of what the service sends: clients ignore unknown properties. */
export function answerSchema<
  const Name extends string,
  const R extends Properties = Nothing,
  const O extends Properties = Nothing,
>(name: Name, parts: ObjectParts<R, O>): NamedSchema<ObjectOf<R, O>, Name> {
  return define(name, objectSchema(parts))
}

/** A reference to `schema`. `ref<Counter>(COUNTER)` gives it the name of its type where the compiler shows it. */
export function ref<T>(schema: NamedSchema<T>): Reference<T> {
  return schema.ref
}

/** A reference to the schema called `name` in the OpenAPI document. */
export function referenceTo<T>(name: string): Reference<T> {
  return { $ref: `#/components/schemas/${name}` } as Reference<T>
}

const defined = new Map<string, JsonSchema>()

/**
 * Every schema that {@link requestSchema} and {@link answerSchema} have defined, in alphabetical order of their names.
 */
export function definedSchemas(): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries([...defined].sort(([one], [other]) => (one < other ? -1 : 1)))
}

function define<T, Name extends string>(name: Name, schema: JsonSchema): NamedSchema<T, Name> {
  if (defined.has(name)) throw new Error(`there are two schemas "${name}"; give one another name`)
  defined.set(name, schema)
  return { name, schema, ref: referenceTo(name), example: schema.examples?.[0] as T }
}

function objectSchema(parts: ObjectParts<Properties, Properties>): JsonSchema {
  const { description, examples, required = {}, optional } = parts
  return {
    description,
    examples,
    type: 'object',
    properties: { ...required, ...optional },
    ...(Object.keys(required).length === 0 ? {} : { required: Object.keys(required) }),
  }
}
