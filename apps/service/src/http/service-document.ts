import type { OpenApiDocument } from '@sluice/contract'
import { componentsOf, FOREIGN_SCHEMAS, openApiDocument, SCHEMAS } from '@sluice/contract'
import { RULE_SET_SCHEMA } from '@sluice/core/internal'
import { jsonAnswer } from './answer.ts'
import type { OperationHandlers } from './operation-handler.ts'

/** The OpenAPI document of the service: the table of operations, and the schemas of rules that the engine checks by. */
export function serviceDocument(version: string): OpenApiDocument {
  const components = componentsOf(RULE_SET_SCHEMA, { root: 'RuleSet', definitions: { rule: 'PolicyRule' } })
  return openApiDocument({ version, components: components as Parameters<typeof openApiDocument>[0]['components'] })
}

/**
 * The schemas that bodies are checked by before a handler gets them. What is said of rules and entries is not among them: the
 * engine checks more than a schema can say, so that is told all at once, by whoever hands it to the engine.
 */
export function formSchemas(): Readonly<Record<string, object>> {
  const anything = [...FOREIGN_SCHEMAS, 'ResourceRule'].map((name) => [name, {}])
  return { ...SCHEMAS, ...Object.fromEntries(anything) }
}

/** `GET /openapi.json`. */
export function documentHandlers(version: string): OperationHandlers {
  const answer = jsonAnswer(200, JSON.stringify(serviceDocument(version)))
  return { 'GET /openapi.json': () => answer }
}
