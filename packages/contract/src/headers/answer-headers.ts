import type { JsonSchema } from '../schema/json-schema.ts'

/** A header of an answer. */
export interface AnswerHeader {
  readonly description: string
  readonly schema: JsonSchema
  readonly example: string
}

const DIGITS: JsonSchema = { type: 'string', pattern: '^[0-9]+$' }
const TEXT: JsonSchema = { type: 'string' }

/** The name of one of {@link ANSWER_HEADERS}. */
export type AnswerHeaderName =
  | 'X-RateLimit-Limit'
  | 'X-RateLimit-Remaining'
  | 'X-RateLimit-Reset'
  | 'X-RateLimit-Reset-After'
  | 'RateLimit'
  | 'RateLimit-Policy'
  | 'Retry-After'
  | 'Cache-Control'
  | 'ETag'
  | 'WWW-Authenticate'

/** Headers of answers, by name. */
export const ANSWER_HEADERS: Readonly<Record<AnswerHeaderName, AnswerHeader>> = {
  'X-RateLimit-Limit': { description: 'Units of the limit that decided.', schema: DIGITS, example: '1000' },
  'X-RateLimit-Remaining': { description: 'Whole units left under it.', schema: DIGITS, example: '523' },
  'X-RateLimit-Reset': {
    description: 'When the full limit is there again: whole seconds since 1970, rounded up.',
    schema: DIGITS,
    example: '1762337100',
  },
  'X-RateLimit-Reset-After': {
    description: 'The same in whole seconds from now, rounded up.',
    schema: DIGITS,
    example: '45',
  },
  RateLimit: {
    description:
      'What is left under each limit (draft-ietf-httpapi-ratelimit-headers-11); only with the header profiles ' +
      'draft-11 and both.',
    schema: TEXT,
    example: '"/api/v1/data@user";r=523;t=45',
  },
  'RateLimit-Policy': {
    description: 'The limits themselves, under the same names; only with the header profiles draft-11 and both.',
    schema: TEXT,
    example: '"/api/v1/data@user";q=1000;w=60',
  },
  'Retry-After': {
    description: 'Whole seconds after which it is worth trying again; absent where waiting does not help.',
    schema: DIGITS,
    example: '45',
  },
  'Cache-Control': { description: 'Whether the answer may be stored.', schema: TEXT, example: 'no-store' },
  ETag: {
    description:
      'What was read or written, for If-Match: the revision of an entry, or the number of a version. Of a list for ' +
      'firewalls, for If-None-Match: its digest.',
    schema: { type: 'string', pattern: '^"[0-9A-Za-z_-]+"$' },
    example: '"13"',
  },
  'WWW-Authenticate': { description: 'How to authenticate.', schema: TEXT, example: 'Bearer' },
}
