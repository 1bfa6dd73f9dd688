import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, choices, requestSchema } from '../schema/json-schema.ts'
import type { Page } from '../schema/value-schemas.ts'
import { ENTRY_NAME, instant, pageSchema, text, whole, words } from '../schema/value-schemas.ts'

/** Longest time that a rotated key stays valid beside the new one. */
export const LONGEST_OVERLAP_MS = 2_592_000_000

/** What the holder of an API key may do with the admin API. `none` is for keys of callers that are only limited. */
export type ApiKeyRole = 'admin' | 'editor' | 'viewer' | 'none'

/** An API key as it is kept: everything but the secret. Instants are in milliseconds since 1970. */
export interface ApiKey {
  /** The visible part, `slk_<id>`. */
  readonly id: string
  readonly name: string
  readonly role: ApiKeyRole
  readonly tenant?: string
  readonly tier?: string
  readonly createdAt: number
  readonly expiresAt?: number
  readonly revokedAt?: number
  /** The key whose place it took. */
  readonly rotatedFrom?: string
}

/** The body that makes an API key. */
export interface ApiKeyRequest {
  readonly name: string
  readonly role: ApiKeyRole
  readonly tenant?: string
  readonly tier?: string
  /** Milliseconds since 1970. */
  readonly expiresAt?: number
}

/** The body that rotates an API key. */
export interface RotateRequest {
  /** Milliseconds for which the old key stays valid beside the new one. Default: 0, which ends it at once. */
  readonly overlapMs?: number
}

/** A key that was just made. */
export interface IssuedApiKey {
  readonly apiKey: ApiKey
  /** `slk_<id>_<secret>`: shown once, kept nowhere. */
  readonly token: string
}

const EXAMPLE: ApiKey = {
  id: 'slk_4f9d1c',
  name: 'deploy',
  role: 'editor',
  createdAt: 1_762_337_100_000,
  expiresAt: 1_798_761_600_000,
}

const ROLE = {
  description: 'What its holder may do with the admin API: all; change rules and callers; read; or nothing.',
  enum: choices('admin', 'editor', 'viewer', 'none'),
} as const

/** The schema of {@link ApiKey}. */
const API_KEY: NamedSchema<ApiKey> = answerSchema('ApiKey', {
  description: 'An API key as it is kept: everything but the secret.',
  examples: [EXAMPLE],
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

/** The schema of a page of {@link ApiKey}. */
export const API_KEY_PAGE: NamedSchema<Page<ApiKey>> = pageSchema('ApiKeyPage', API_KEY.ref, EXAMPLE)

/** The schema of {@link ApiKeyRequest}. */
export const API_KEY_REQUEST: NamedSchema<ApiKeyRequest> = requestSchema('ApiKeyRequest', {
  description: 'What a new key is for.',
  examples: [{ name: 'deploy', role: 'editor', expiresAt: 1_798_761_600_000 }],
  required: { name: text('What to call it.', 200), role: ROLE },
  optional: {
    tenant: text('The tenant it belongs to: it reaches nothing of others.', 256),
    tier: { ...ENTRY_NAME, description: 'The tier of its holder.' },
    expiresAt: instant('From then on it is not valid. Default: never expires.'),
  },
})

/** The schema of {@link RotateRequest}. */
export const ROTATE_REQUEST: NamedSchema<RotateRequest> = requestSchema('RotateRequest', {
  description: 'How a key is replaced.',
  examples: [{ overlapMs: 3_600_000 }],
  required: {},
  optional: {
    overlapMs: whole(
      'Milliseconds for which the old key stays valid beside the new one. Default: 0, which ends it at once.',
      0,
      LONGEST_OVERLAP_MS,
    ),
  },
})

/** The schema of {@link IssuedApiKey}. */
export const ISSUED_API_KEY: NamedSchema<IssuedApiKey> = answerSchema('IssuedApiKey', {
  description: 'A key that was just made.',
  examples: [{ apiKey: EXAMPLE, token: 'slk_4f9d1c_EXAMPLE' }],
  required: {
    apiKey: API_KEY.ref,
    token: words('What is sent as Authorization: Bearer. Shown once, and kept nowhere.'),
  },
})
