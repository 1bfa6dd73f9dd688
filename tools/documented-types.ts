import { createRequire } from 'node:module'
import { join } from 'node:path'

/** The part of a schema that becomes comments. */
interface DescribedSchema {
  readonly $ref?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, DescribedSchema>>
}

/** The part of an operation that becomes comments. */
interface DescribedOperation {
  readonly description: string
  readonly parameters: Readonly<Record<string, { readonly description: string }>>
}

/** The part of the contract that becomes comments. */
export interface DescribedContract {
  /** By name. */
  readonly SCHEMAS: Readonly<Record<string, DescribedSchema>>
  /** By id. */
  readonly OPERATIONS: Readonly<Record<string, DescribedOperation>>
}

/** The compiled contract of the repository at `root`. */
export function compiledContract(root: string): DescribedContract {
  return createRequire(import.meta.url)(join(root, 'packages/contract/dist/index.js')) as DescribedContract
}

/** The type of a body, as the compiler writes down what it inferred from a schema; last, the name of the schema. */
const BODY = /^(?:export )?declare const (\w+): [^\n]*NamedSchema<\{\n([\s\S]*?)^\}, "(\w+)">;$/gm

/** The name of that type. */
const BODY_NAME = /^export interface \w+ extends Infer<typeof (\w+)> \{$/gm

/** The types of the calls of operations. */
const CALLS = /(?<=^export declare const \w+: [^\n]*OperationsOf<\{\n)[\s\S]*?(?=^\}>;$)/gm

/** A property of a type. The margin says how deep it is. */
const PROPERTY = /^( +)readonly (\w+)\??:/gm

const MARGIN = '    '
const MARGIN_OF_PARAMETERS = MARGIN.repeat(3)

/**
 * A declaration file of the contract with the descriptions of schemas, operations and parameters as comments. Inferred
 * types have no comments of their own, and editors show nothing else.
 */
export function documentedTypes(text: string, contract: DescribedContract): string {
  const { SCHEMAS } = contract
  const names = new Map<string, string>()
  return text
    .replace(BODY, (...[declaration, constant, body, name]: [string, string, string, string]) => {
      names.set(constant, name)
      return declaration.replace(body, () => documentedBody(body, SCHEMAS[name], contract))
    })
    .replace(BODY_NAME, (start: string, constant: string) =>
      commented(start, '', SCHEMAS[names.get(constant) ?? '']?.description),
    )
    .replace(CALLS, (calls) => documentedCalls(calls, contract))
}

/** Only the properties of the body itself: types inside it have comments of their own. */
function documentedBody(text: string, schema: DescribedSchema | undefined, { SCHEMAS }: DescribedContract): string {
  return text.replace(PROPERTY, (start: string, margin: string, name: string) => {
    if (margin !== MARGIN) return start
    const { $ref = '', description } = schema?.properties?.[name] ?? {}
    return commented(start, margin, description ?? SCHEMAS[$ref.split('/').at(-1) ?? '']?.description)
  })
}

function documentedCalls(text: string, { OPERATIONS }: DescribedContract): string {
  let operation: DescribedOperation | undefined
  return text.replace(PROPERTY, (start: string, margin: string, name: string) => {
    if (margin === MARGIN) {
      operation = OPERATIONS[name]
      return commented(start, margin, operation?.description)
    }
    return margin === MARGIN_OF_PARAMETERS ? commented(start, margin, operation?.parameters[name]?.description) : start
  })
}

function commented(declaration: string, margin: string, description: string | undefined): string {
  if (description === undefined) return declaration
  return `${margin}/** ${description.replaceAll('*/', '*\\/')} */\n${declaration}`
}
