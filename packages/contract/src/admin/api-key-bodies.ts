import type { Infer } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { entryName, instant, pageSchema, text, whole, words } from '../schema/value-schemas.ts'

/** Longest time that a rotated key stays valid beside the new one. */
const LONGEST_OVERLAP_MS = 2_592_000_000

const ROLE = {
  description: 'What its holder may do with the admin API: all; change rules and callers; read; or nothing.',
  enum: ['admin', 'editor', 'viewer', 'none'],
} as const

const API_KEY = answerSchema('ApiKey', {
  description: 'An API key as it is kept: everything but the secret.',
  examples: [
    {
      id: 'slk_4f9d1c',
      name: 'deploy',
      role: 'editor',
      createdAt: 1_762_337_100_000,
      expiresAt: 1_798_761_600_000,
    },
  ],
  required: {
    id: words('The visible part, by which the key is known.'),
    name: words('What it is called; stands in the audit log.'),
    role: ROLE,
    createdAt: instant('When it was made.'),
  },
  optional: {
    tenant: words('The tenant it belongs to: it reaches nothing of others.'),
    tier: words('The tier of its holder.'),
    expiresAt: instant('From then on it is not valid.'),
    revokedAt: instant('When it was ended.'),
    rotatedFrom: words('The key whose place it took.'),
  },
})
export interface ApiKey extends Infer<typeof API_KEY> {}

/** What the holder of an API key may do with the admin API. `none` is for keys of callers that are only limited. */
export type ApiKeyRole = ApiKey['role']

export const API_KEY_PAGE = pageSchema<ApiKey>('ApiKeyPage', API_KEY)

export const API_KEY_REQUEST = requestSchema('ApiKeyRequest', {
  description: 'What a new key is for.',
  examples: [{ name: 'deploy', role: 'editor', expiresAt: 1_798_761_600_000 }],
  required: { name: text('What to call it.', 200), role: ROLE },
  optional: {
    tenant: text('The tenant it belongs to: it reaches nothing of others.', 256),
    tier: entryName('The tier of its holder.'),
    expiresAt: instant('From then on it is not valid. Default: never expires.'),
  },
})
export interface ApiKeyRequest extends Infer<typeof API_KEY_REQUEST> {}

export const ROTATE_REQUEST = requestSchema('RotateRequest', {
  description: 'How a key is replaced.',
  examples: [{ overlapMs: 3_600_000 }],
  optional: {
    overlapMs: whole(
      'Milliseconds for which the old key stays valid beside the new one. Default: 0, which ends it at once.',
      0,
      LONGEST_OVERLAP_MS,
    ),
  },
})
export interface RotateRequest extends Infer<typeof ROTATE_REQUEST> {}

export const ISSUED_API_KEY = answerSchema('IssuedApiKey', {
  description: 'A key that was just made.',
  examples: [{ apiKey: API_KEY.example, token: 'slk_4f9d1c_EXAMPLE' }],
  required: {
    apiKey: API_KEY.ref,
    token: words('What is sent as Authorization: Bearer. Shown once, and kept nowhere.'),
  },
})
export interface IssuedApiKey extends Infer<typeof ISSUED_API_KEY> {}
