import type { JsonSchema } from '@sluice/core/internal'

type Optional<T, K extends keyof T> = Record<never, never> extends Pick<T, K> ? true : false

type RequiredKey<T> = { [K in keyof T]-?: Optional<T, K> extends true ? never : K }[keyof T]

/** An object of type `T`: every property has its schema, and exactly the properties that `T` requires are required. */
interface ObjectOf<T> extends Pick<JsonSchema, 'title' | 'description' | 'examples' | 'dependentRequired'> {
  readonly properties: { readonly [K in keyof T]-?: JsonSchema }
  readonly required: { readonly [K in RequiredKey<T>]: true }
}

/**
 * The schema of an object. Type and schema cannot differ: a property that is missing here or too much, or required in
 * one of them only, is an error of the compiler.
 */
export function objectSchema<T>({ required, ...schema }: ObjectOf<T>): JsonSchema {
  return { ...schema, type: 'object', required: Object.keys(required), additionalProperties: false }
}

/** A duration, as rules have it, with its default in milliseconds. */
export function durationSchema(description: string, defaultMs?: number): JsonSchema {
  const text = defaultMs === undefined ? description : `${description} Default: ${defaultMs / 1000} s.`
  return { $ref: '#/$defs/duration', description: text, ...(defaultMs === undefined ? {} : { default: defaultMs }) }
}

/** A list that is not empty, of different texts. */
export function textsSchema(items: JsonSchema, about: Pick<JsonSchema, 'description' | 'examples'>): JsonSchema {
  return { ...about, type: 'array', minItems: 1, uniqueItems: true, items }
}

/** A choice, the default of which is named in the description. */
export function choiceSchema(choices: readonly string[], description: string, preset: string): JsonSchema {
  return { description: `${description} Default: ${preset}.`, examples: [preset], enum: choices, default: preset }
}

/** The path of a file. */
export function fileSchema(description: string, example: string): JsonSchema {
  return { title: `a path such as "${example}"`, description, examples: [example], type: 'string', minLength: 1 }
}
