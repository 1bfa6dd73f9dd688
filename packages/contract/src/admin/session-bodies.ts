import type { Infer } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { bodyOf, flag, instant, pageSchema, text, words } from '../schema/value-schemas.ts'

/** The header that carries the token of {@link SESSION_STATE} with every change made by a session. */
const CSRF_HEADER = 'X-CSRF-Token'

export const SIGN_IN_REQUEST = requestSchema('SignInRequest', {
  description: 'The API key to sign in with.',
  examples: [{ apiKey: 'slk_4f9d1c_EXAMPLE' }],
  required: { apiKey: text('An API key, slk_<id>_<secret>, with the role viewer, editor or admin.', 400) },
})
export interface SignInRequest extends Infer<typeof SIGN_IN_REQUEST> {}

const SESSION = answerSchema('Session', {
  description: 'A browser that is signed in.',
  examples: [
    {
      id: '7f3kQm2Xv9Lr',
      keyId: 'slk_4f9d1c',
      name: 'ada',
      role: 'editor',
      createdAt: 1_762_337_100_000,
      lastSeenAt: 1_762_338_000_000,
      idleExpiresAt: 1_762_339_800_000,
      expiresAt: 1_762_380_300_000,
      isCurrent: true,
      address: '192.0.2.0/24',
      browser: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0',
    },
  ],
  required: {
    id: words('Names it. It is not a secret.'),
    keyId: words('The visible part of the API key that it was signed in with.'),
    name: words('Name of that key; stands in the audit log.'),
    role: { description: 'What it may do: the role of its key.', enum: ['admin', 'editor', 'viewer'] },
    createdAt: instant('When it was signed in.'),
    lastSeenAt: instant('When it was last used, to the minute.'),
    idleExpiresAt: instant('It ends then unless it is used before.'),
    expiresAt: instant('It ends then at the latest.'),
    isCurrent: flag('Whether it is the session of this request.'),
  },
  optional: {
    tenant: words('The tenant of its key: it reaches nothing of others.'),
    address: words('The network that it was signed in from.'),
    browser: words('The User-Agent that it was signed in with, shortened.'),
  },
})
export interface Session extends Infer<typeof SESSION> {}

export const SESSION_PAGE = pageSchema<Session>('SessionPage', SESSION)

export const SESSION_STATE = answerSchema('SessionState', {
  description: 'Who is signed in.',
  examples: [
    { isSignedIn: true, session: SESSION.example, csrfToken: 'q0oJ3v5kYw6l8o1nQx2rTg' },
    { isSignedIn: false },
  ],
  required: { isSignedIn: flag('Whether the cookie of the request is of a session that goes on.') },
  optional: {
    session: bodyOf<Session>(SESSION, 'The session; absent without a session.'),
    csrfToken: words('Send it as X-CSRF-Token with every POST, PUT and DELETE; absent without a session.'),
  },
})
export interface SessionState extends Infer<typeof SESSION_STATE> {}
