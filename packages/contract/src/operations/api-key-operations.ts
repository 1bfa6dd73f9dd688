import type { ApiKeyRequest, IssuedApiKey, RotateRequest } from '../admin/api-key-bodies.ts'
import { API_KEY_PAGE, API_KEY_REQUEST, ISSUED_API_KEY, ROTATE_REQUEST } from '../admin/api-key-bodies.ts'
import { ref } from '../schema/json-schema.ts'
import type { ProblemCode } from '../service/problem.ts'
import { operations, PAGE_PARAMETERS, pathPart } from './operation.ts'

const PROBLEMS_OF_ALL: readonly ProblemCode[] = ['SLUICE_HTTP_OVERLOADED', 'SLUICE_HTTP_CONFIG_UNAVAILABLE']

const PROBLEMS_OF_WRITES: readonly ProblemCode[] = [...PROBLEMS_OF_ALL, 'SLUICE_HTTP_CONFLICT']

const WHICH = { id: pathPart('The visible part of the key.', { type: 'string', pattern: '^[A-Za-z0-9_-]{1,100}$' }) }

const ISSUED = { schema: ref<IssuedApiKey>(ISSUED_API_KEY), headers: ['Cache-Control'] } as const

/** Who may use this API. */
export const API_KEY_OPERATIONS = operations('keys', {
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
    body: ref<ApiKeyRequest>(API_KEY_REQUEST),
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
    body: ref<RotateRequest>(ROTATE_REQUEST),
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
