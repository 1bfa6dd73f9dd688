import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { FOREIGN_SCHEMAS } from './admin/rule-set-types.ts'
import { DOCUMENT, FOREIGN_COMPONENTS, referencesIn, validatorOf } from './document.test.support.ts'
import { openApiDocument } from './openapi.ts'
import type { Operation } from './operations/operation.ts'
import { OPERATIONS } from './operations/operation-table.ts'

interface MediaObject {
  readonly schema: { readonly $ref?: string }
  readonly example?: unknown
}

interface ResponseObject {
  readonly $ref?: string
  readonly content?: Readonly<Record<string, MediaObject>>
}

interface OperationObject {
  readonly operationId: string
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaObject>> }
  readonly responses: Readonly<Record<string, ResponseObject>>
}

const operations = Object.values<Operation>(OPERATIONS)

function objectOf({ path, method }: Operation): OperationObject {
  return DOCUMENT.paths[path]?.[method.toLowerCase()] as OperationObject
}

/** A response, also where it is shared. */
function resolved(response: ResponseObject): ResponseObject {
  const name = response.$ref?.replace('#/components/responses/', '')
  return name === undefined ? response : (DOCUMENT.components.responses[name] as ResponseObject)
}

/** The document as it goes over the wire. */
function sent(): Record<string, unknown> {
  return JSON.parse(JSON.stringify(DOCUMENT)) as Record<string, unknown>
}

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const validator = new Validator()
    expect(await validator.validate(sent())).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
  })

  it('would not be valid with an operation that answers nothing', async () => {
    const broken = sent()
    const paths = broken['paths'] as Record<string, { get: { responses?: object } }>
    paths['/livez']!.get.responses = { ok: {} }
    expect(await new Validator().validate(broken)).toMatchObject({ valid: false })
  })

  it('has every operation of the table, and no other', () => {
    const listed = Object.values(DOCUMENT.paths).flatMap((methods) => Object.values(methods) as OperationObject[])
    expect(listed.map(({ operationId }) => operationId).toSorted()).toEqual(Object.keys(OPERATIONS).toSorted())
    for (const operation of operations) expect(objectOf(operation).operationId).toBe(operation.id)
  })

  it('says the role that each operation needs', () => {
    for (const operation of operations) {
      expect(objectOf(operation).security).toEqual(operation.role === 'none' ? [] : [{ bearer: [operation.role] }])
    }
  })

  it('refers only to what it has', () => {
    const dangling = referencesIn(DOCUMENT).filter((reference) => {
      const names = reference.replace(/^#\//, '').split('/')
      return (
        names.reduce<unknown>((place, name) => (place as Record<string, unknown> | undefined)?.[name], DOCUMENT) ===
        undefined
      )
    })
    expect(dangling).toEqual([])
    expect(referencesIn(DOCUMENT).length).toBeGreaterThan(300)
  })

  it('describes every tag that operations have, and no other', () => {
    const described = DOCUMENT.tags.map((tag) => (tag as { readonly name: string }).name)
    expect(described.toSorted()).toEqual([...new Set(operations.map(({ tag }) => tag))].toSorted())
  })

  it('asks for If-Match where a change is locked, for If-None-Match where something is put, and nowhere else', () => {
    for (const operation of operations) {
      const headers = objectOf(operation).parameters?.filter((parameter) => parameter.in === 'header') ?? []
      const { id, hasEtag, method } = operation
      const puts = method === 'PUT' ? ['If-Match', 'If-None-Match'] : ['If-Match']
      expect([id, headers.map(({ name }) => name)]).toEqual([id, hasEtag && method !== 'GET' ? puts : []])
    }
  })

  it('has examples that are valid by their schemas', () => {
    let checked = 0
    for (const operation of operations) {
      const { requestBody, responses } = objectOf(operation)
      const answers = Object.values(responses).map(resolved)
      const contents = [requestBody?.content, ...answers.map(({ content }) => content)]
      for (const { schema, example } of contents.flatMap((content) => Object.values(content ?? {}))) {
        if (schema.$ref === undefined || example === undefined) continue
        const validate = validatorOf(schema.$ref.replace('#/components/schemas/', ''))
        expect([operation.id, example, validate(example), validate.errors]).toEqual([operation.id, example, true, null])
        checked += 1
      }
    }
    expect(checked).toBeGreaterThan(300)
  })

  it('tells every problem of an operation under its status', () => {
    for (const operation of operations) {
      for (const [status, { problems = [] }] of Object.entries(operation.answers)) {
        const response = resolved(objectOf(operation).responses[status]!)
        for (const code of problems) expect(response).toHaveProperty('description', expect.stringContaining(code))
        const example = response.content?.['application/problem+json']?.example
        if (problems.length > 0) expect(example).toMatchObject({ status: Number(status), code: problems[0] })
      }
    }
  })

  it('has an example of every body of its own', () => {
    const foreign = new Set<string>(FOREIGN_SCHEMAS)
    const silent = operations.filter((operation) => {
      const { schema, example } = objectOf(operation).requestBody?.content['application/json'] ?? { schema: {} }
      return schema.$ref !== undefined && !foreign.has(schema.$ref.split('/').at(-1)!) && example === undefined
    })
    expect(silent.map(({ id }) => id)).toEqual([])
  })
})

describe('the schema of rules for one resource', () => {
  const rule = { dimension: 'user', limit: 100, window: '1m' }

  it('is that of all rules, without the resource', () => {
    const isOne = validatorOf('ResourceRule')
    const isAny = validatorOf('PolicyRule')
    expect([isOne(rule), isAny(rule)]).toEqual([true, false])
    expect([isOne({ ...rule, resource: '/a' }), isAny({ ...rule, resource: '/a' })]).toEqual([false, true])
    expect(isOne({ algorithm: 'concurrency', lease: '1s' })).toBe(true)
    expect(isOne({ ...rule, lease: '1s' })).toBe(false)
  })

  it('has examples without it', () => {
    expect(DOCUMENT.components.schemas['ResourceRule']).toMatchObject({ examples: [rule] })
  })
})

describe('components from elsewhere', () => {
  it('do not take the names of those here', () => {
    const components = { ...FOREIGN_COMPONENTS, CheckRequest: {} }
    expect(() => openApiDocument({ version: '1.2.3', components })).toThrow('"CheckRequest"')
  })
})
