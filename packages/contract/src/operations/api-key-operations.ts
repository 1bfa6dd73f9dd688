import type { ApiKey, ApiKeyRequest, IssuedApiKey, RotateRequest } from '../admin/api-key-bodies.ts'
import { API_KEY_PAGE, API_KEY_REQUEST, ISSUED_API_KEY, ROTATE_REQUEST } from '../admin/api-key-bodies.ts'
import type { Page } from '../schema/value-schemas.ts'
import type { ProblemCode } from '../service/problem.ts'
import type { CallOf, OperationsOf, PageCall } from './operation.ts'
import { operations, PAGE_PARAMETERS, pathPart } from './operation.ts'

/** What goes in and out of the operations on API keys. */
export interface ApiKeyCalls {
  readonly listApiKeys: PageCall<{ readonly answer: Page<ApiKey> }>
  readonly createApiKey: CallOf<{ readonly body: ApiKeyRequest; readonly answer: IssuedApiKey }>
  readonly rotateApiKey: CallOf<{
    readonly parameters: { readonly id: string }
    readonly body: RotateRequest
    readonly answer: IssuedApiKey
  }>
  readonly revokeApiKey: CallOf<{ readonly parameters: { readonly id: string } }>
}

const PROBLEMS_OF_ALL: readonly ProblemCode[] = ['SLUICE_HTTP_OVERLOADED', 'SLUICE_HTTP_CONFIG_UNAVAILABLE']

const PROBLEMS_OF_WRITES: readonly ProblemCode[] = [...PROBLEMS_OF_ALL, 'SLUICE_HTTP_CONFLICT']

const WHICH = { id: pathPart('The visible part of the key.', { type: 'string', pattern: '^[A-Za-z0-9_-]{1,100}$' }) }

const ISSUED = { schema: ISSUED_API_KEY.ref, headers: ['Cache-Control'] } as const

/** Who may use this API. */
export const API_KEY_OPERATIONS: OperationsOf<ApiKeyCalls> = operations<ApiKeyCalls>('keys', {
  listApiKeys: {
    method: 'GET',
    path: '/admin/api-keys',
    role: 'admin',
    summary: 'Lists API keys',
    description: 'All keys, without their secrets, also those that have ended.',
    parameters: PAGE_PARAMETERS,
    answers: { 200: { description: 'The keys.', schema: API_KEY_PAGE.ref } },
    problems: PROBLEMS_OF_ALL,
  },
  createApiKey: {
    method: 'POST',
    path: '/admin/api-keys',
    role: 'admin',
    summary: 'Creates an API key',
    description: 'The token is in this answer and nowhere else: only a hash of it is kept.',
    body: API_KEY_REQUEST.ref,
    answers: { 201: { description: 'The key and its token.', ...ISSUED } },
    problems: PROBLEMS_OF_WRITES,
  },
  rotateApiKey: {
    method: 'POST',
    path: '/admin/api-keys/{id}/rotate',
    role: 'admin',
    summary: 'Rotates an API key',
    description: 'Makes a new key in the place of this one, which stays valid for as long as is said and then ends.',
    parameters: WHICH,
    body: ROTATE_REQUEST.ref,
    answers: { 201: { description: 'The new key and its token.', ...ISSUED } },
    problems: PROBLEMS_OF_WRITES,
  },
  revokeApiKey: {
    method: 'DELETE',
    path: '/admin/api-keys/{id}',
    role: 'admin',
    summary: 'Revokes an API key',
    description: 'The key stops working here at once, and on all nodes within seconds.',
    parameters: WHICH,
    answers: { 204: { description: 'It has ended.' } },
    problems: PROBLEMS_OF_WRITES,
  },
})
