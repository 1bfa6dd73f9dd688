import { type JsonSchema, RULE_SET_FILE_SCHEMA, SchemaCheck } from '@sluice/core/internal'
import { describe, expect, it } from 'vitest'
import { GATEWAY_DEFINITIONS, GATEWAY_PARTS, GATEWAY_SCHEMA } from './gateway-schema.ts'

/** Every schema in a schema, with its place, but what references lead to. */
function allSchemas(schema: JsonSchema, path: string): [string, JsonSchema][] {
  const { properties = {}, anyOf = [], items, additionalProperties, propertyNames } = schema
  return [
    [path, schema],
    ...Object.entries(properties).flatMap(([name, one]) =>
      one === false ? [] : allSchemas(one, `${path}/properties/${name}`),
    ),
    ...anyOf.flatMap((one, index) => allSchemas(one, `${path}/anyOf/${index}`)),
    ...(items === undefined ? [] : allSchemas(items, `${path}/items`)),
    ...(typeof additionalProperties === 'object'
      ? allSchemas(additionalProperties, `${path}/additionalProperties`)
      : []),
    ...(propertyNames === undefined ? [] : allSchemas(propertyNames, `${path}/propertyNames`)),
  ]
}

const SCHEMAS = [
  ...Object.entries(GATEWAY_PARTS).flatMap(([name, part]) => allSchemas(part, `#/properties/${name}`)),
  ...Object.entries(GATEWAY_DEFINITIONS).flatMap(([name, part]) => allSchemas(part, `#/$defs/${name}`)),
]

/** What is said beside a reference, else what it leads to. */
function described(schema: JsonSchema): JsonSchema {
  const name = schema.$ref?.replace('#/$defs/', '')
  return name === undefined ? schema : { ...described(GATEWAY_SCHEMA.$defs![name]!), ...schema }
}

describe('the schema of the gateway', () => {
  it('describes every property in words and by example, for editors', () => {
    const silent = SCHEMAS.filter(([path]) => /\/properties\/[^/]+$/.test(path)).filter(([, schema]) => {
      const { description, examples } = described(schema)
      return description === undefined || examples === undefined
    })
    expect(silent.map(([path]) => path)).toEqual([])
  })

  it('has only examples and defaults that are valid', () => {
    const check = new SchemaCheck(GATEWAY_SCHEMA)
    const wrong = SCHEMAS.flatMap(([path, schema]) =>
      [...(schema.examples ?? []), ...(schema.default === undefined ? [] : [schema.default])].flatMap((value) =>
        check.problemsOf(value, path).map((problem) => ({ path, value, problem })),
      ),
    )
    expect(wrong).toEqual([])
  })

  it('says in words what regular expressions ask for', () => {
    const silent = SCHEMAS.filter(([, { pattern, title }]) => pattern !== undefined && title === undefined)
    expect(silent.map(([path]) => path)).toEqual([])
  })

  it('takes no name that the rules of the same file define', () => {
    expect(Object.keys(GATEWAY_DEFINITIONS).filter((name) => RULE_SET_FILE_SCHEMA.$defs![name] !== undefined)).toEqual(
      [],
    )
    for (const name of Object.keys(GATEWAY_PARTS)) expect(RULE_SET_FILE_SCHEMA.properties).toHaveProperty(name)
  })
})
