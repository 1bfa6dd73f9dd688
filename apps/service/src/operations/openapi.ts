import { readFileSync } from 'node:fs'
import type { OpenApiDocument } from '@sluice/contract'
import { componentsOf, openApiDocument } from '@sluice/contract'
import { RULE_SET_SCHEMA } from '@sluice/core/internal'
import type { OperationHandlers } from './handler.ts'
import { jsonAnswer } from './handler.ts'

/** The OpenAPI document of the service: the operation table, and the schemas of the rule engine. */
export function serviceDocument(version: string): OpenApiDocument {
  const components = componentsOf(RULE_SET_SCHEMA, { root: 'RuleSet', definitions: { rule: 'PolicyRule' } })
  return openApiDocument({ version, components: components as Parameters<typeof openApiDocument>[0]['components'] })
}

/** Serves the document. */
export function documentHandlers(document: OpenApiDocument): OperationHandlers<'openapi'> {
  const answer = jsonAnswer(200, JSON.stringify(document))
  return { openapi: () => answer }
}

/** Version of the service, from its package.json. */
export const VERSION: string = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
