import type { ValidateFunction } from 'ajv/dist/2020.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { OpenApiDocument } from './openapi.ts'
import { openApiDocument } from './openapi.ts'

const text = { type: 'string', minLength: 1 }
const instant = { type: 'integer', minimum: 0 }

function closed(properties: Readonly<Record<string, object>>, required: readonly string[]): object {
  return { type: 'object', properties, required, additionalProperties: false }
}

const windowed = {
  resource: { $ref: '#/components/schemas/Resource' },
  dimension: text,
  limit: { type: 'integer', minimum: 0 },
  window: text,
}

/** Schemas in the form that the rule engine has them, with fewer options. */
export const FOREIGN_COMPONENTS: Parameters<typeof openApiDocument>[0]['components'] = {
  Resource: { type: 'string', minLength: 1, maxLength: 2048 },
  PolicyRule: {
    title: 'a rule such as { resource: "/orders", dimension: "user", limit: 100, window: "1m" }',
    examples: [{ resource: '/orders', dimension: 'user', limit: 100, window: '1m' }],
    type: 'object',
    anyOf: [
      closed({ ...windowed, algorithm: { const: 'gcra' } }, ['resource', 'dimension', 'limit', 'window']),
      closed({ ...windowed, algorithm: { const: 'concurrency' }, lease: text }, ['resource', 'algorithm', 'lease']),
    ],
  },
  RuleSet: closed({ rules: { type: 'array', items: { $ref: '#/components/schemas/PolicyRule' } } }, ['rules']),
  Override: closed({ dimension: text, entity: text, resource: text, terms: { type: 'object' }, expiresAt: instant }, [
    'dimension',
    'entity',
    'resource',
    'terms',
  ]),
  Membership: closed({ dimension: text, entity: text, tier: text, expiresAt: instant }, [
    'dimension',
    'entity',
    'tier',
  ]),
  Block: closed(
    { dimension: text, entity: text, until: instant, strikes: instant, forgottenAt: instant, rule: text, reason: text },
    ['dimension', 'entity', 'until', 'strikes', 'forgottenAt'],
  ),
  Incident: closed({ active: { type: 'boolean' }, until: instant }, ['active']),
  Tier: closed({ name: text, multiplier: { type: 'number' }, burst: instant }, ['name']),
  Exemption: closed({ name: text, match: { type: 'object' } }, ['name', 'match']),
  DenyEntry: closed({ name: text, match: { type: 'object' } }, ['name', 'match']),
}

/** The document that tests look at. */
export const DOCUMENT: OpenApiDocument = openApiDocument({ version: '1.2.3', components: FOREIGN_COMPONENTS })

const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allowUnionTypes: true })
ajv.addKeyword('components')
ajv.addSchema({ $id: 'document', components: { schemas: DOCUMENT.components.schemas } })

/** The check of an independent validator for a schema of the document. */
export function validatorOf(name: string): ValidateFunction {
  const validate = ajv.getSchema(`document#/components/schemas/${name}`)
  if (validate === undefined) throw new Error(`the document has no schema ${name}`)
  return validate
}

/** Every `$ref` in a value, wherever it stands. */
export function referencesIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, part]) =>
    key === '$ref' && typeof part === 'string' ? [part] : referencesIn(part),
  )
}

/** Every schema that is needed for those referred to in `value`, by name. */
export function schemasNeededBy(value: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  const open = [value]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const reference of referencesIn(next)) {
      const name = reference.replace('#/components/schemas/', '')
      if (found.has(name)) continue
      found.add(name)
      open.push(DOCUMENT.components.schemas[name])
    }
  }
  return found
}
