import { createRequire } from 'node:module'
import { join } from 'node:path'

/** The part of a schema that becomes a comment. */
interface DescribedSchema {
  readonly $ref?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, DescribedSchema>>
}

/** Schemas by their names. */
export type DescribedSchemas = Readonly<Record<string, DescribedSchema>>

/** The schemas of the compiled contract of the repository at `root`. */
export function contractSchemas(root: string): DescribedSchemas {
  const contract = createRequire(import.meta.url)(join(root, 'packages/contract/dist/index.js')) as unknown
  return (contract as { readonly SCHEMAS: DescribedSchemas }).SCHEMAS
}

/** The type of a body, as the compiler writes down what it inferred from a schema; last, the name of the schema. */
const INFERRED = /^(?:export )?declare const (\w+): [^\n]*NamedSchema<\{\n([\s\S]*?)^\}, "(\w+)">;$/gm

/** The name of that type. */
const NAMED = /^export interface \w+ extends Infer<typeof (\w+)> \{$/gm

/** A property of the body itself. Those of types inside it have a wider margin. */
const PROPERTY = /^ {4}readonly (\w+)\??:/gm

/**
 * A declaration file of the contract with the descriptions of the schemas as comments on types and properties. Types
 * that are inferred from schemas have none of their own, and editors show comments only.
 */
export function documentedTypes(text: string, schemas: DescribedSchemas): string {
  const names = new Map<string, string>()
  const withProperties = text.replace(
    INFERRED,
    (...[declaration, constant, body, name]: [string, string, string, string]) => {
      names.set(constant, name)
      const { properties = {} } = schemas[name] ?? {}
      const documented = body.replace(PROPERTY, (start: string, property: string) => {
        return commented(descriptionOf(properties[property], schemas), start, '    ')
      })
      return declaration.replace(body, () => documented)
    },
  )
  return withProperties.replace(NAMED, (start: string, constant: string) =>
    commented(schemas[names.get(constant) ?? '']?.description, start, ''),
  )
}

/** What a schema says of itself, or else the one that it refers to. */
function descriptionOf(schema: DescribedSchema | undefined, schemas: DescribedSchemas): string | undefined {
  const name = schema?.$ref?.split('/').at(-1) ?? ''
  return schema?.description ?? schemas[name]?.description
}

function commented(description: string | undefined, declaration: string, margin: string): string {
  if (description === undefined) return declaration
  return `${margin}/** ${description.replaceAll('*/', '*\\/')} */\n${declaration}`
}
