import type { FieldProblem } from './field-problem.ts'
import { describeReceived, pointerTo } from './field-problem.ts'
import { isIpAddress } from './ip-address.ts'

/** Where checks are asked: `POST` to this path. */
export const CHECK_PATH = '/internal/ratelimit/check'

/** Most tokens one request may take. */
export const MOST_TOKENS = 1_000_000_000

/** The body of a check: who calls what. */
export interface CheckRequest {
  /** The user, as your authentication knows it: 1 to 256 characters, no control characters. */
  readonly userId?: string
  /** The API key, or better a name for it: 1 to 512 characters, no control characters. */
  readonly apiKey?: string
  /** Address of the caller: IPv4 or IPv6, without port. */
  readonly clientIp?: string
  /** The tenant: 1 to 256 characters, no control characters. */
  readonly tenantId?: string
  /** What is called: a path that begins with `/`, or `*`; at most 2048 characters. */
  readonly resource: string
  /** Its HTTP method. */
  readonly method?: string
  /** Tokens to take: whole, 0 to {@link MOST_TOKENS}; 1 when left out, 0 asks without taking. */
  readonly tokens?: number
}

/** A field of {@link CheckRequest}. */
export type CheckField = keyof CheckRequest

/** A check request that was found valid: nothing unknown in it, `tokens` filled in, the `Needed` fields there. */
export type ValidCheckRequest<Needed extends CheckField = never> = {
  readonly [Name in Exclude<CheckField, 'tokens'>]: Name extends Needed | 'resource' ? string : string | undefined
} & { readonly tokens: number }

/** What {@link parseCheckRequest} found: the request, or everything that is wrong with it. */
export type ParsedCheckRequest<Needed extends CheckField = never> =
  | { readonly ok: true; readonly request: ValidCheckRequest<Needed> }
  | {
      readonly ok: false
      /** At least one. All problems of known fields, then of unknown ones as many as fit. */
      readonly problems: readonly FieldProblem[]
      /** Unknown fields beyond those in `problems`: a body can hold thousands. */
      readonly unlisted: number
    }

interface Field {
  readonly accepts: (value: unknown) => boolean
  readonly expected: string
  /** Whether the value may be a secret or name a person: then no message repeats it. */
  readonly isPrivate: boolean
}

const CONTROL_CHARACTER = /\p{Cc}/u
const METHOD = /^[!#$%&'*+.^_`|~\dA-Za-z-]{1,32}$/

const FIELDS: ReadonlyMap<string, Field> = new Map<CheckField, Field>([
  ['userId', identity(256)],
  ['apiKey', identity(512)],
  [
    'clientIp',
    {
      accepts: (value) => typeof value === 'string' && isIpAddress(value),
      expected: 'an IPv4 or IPv6 address without port, brackets or zone',
      isPrivate: true,
    },
  ],
  ['tenantId', identity(256)],
  [
    'resource',
    {
      accepts: (value) => isText(value, 2048) && (value.startsWith('/') || value === '*'),
      expected: 'a path that begins with "/", or "*", of at most 2048 characters and no control characters',
      isPrivate: false,
    },
  ],
  [
    'method',
    {
      accepts: (value) => typeof value === 'string' && METHOD.test(value),
      expected: 'an HTTP method such as "GET", of at most 32 characters',
      isPrivate: false,
    },
  ],
  [
    'tokens',
    {
      accepts: (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MOST_TOKENS,
      expected: `a whole number from 0 to ${MOST_TOKENS}`,
      isPrivate: false,
    },
  ],
])

const MOST_UNKNOWN_LISTED = 16

/**
 * Turns the parsed JSON of a body into a check request, or into the list of everything that is wrong with it: wrong
 * values, missing fields (`resource`, and those `needed`), unknown fields. Never throws; `body` may be anything that
 * `JSON.parse` gives, also an object with a member named `__proto__`.
 */
export function parseCheckRequest<Needed extends CheckField = never>(
  body: unknown,
  needed: readonly Needed[] = [],
): ParsedCheckRequest<Needed> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    const problem = { path: '', received: describeReceived(body, true), expected: 'a JSON object with the check' }
    return { ok: false, problems: [problem], unlisted: 0 }
  }
  if (!isValid(body, needed)) return { ok: false, ...problemsOf(body, needed) }
  const { userId, apiKey, clientIp, tenantId, resource, method, tokens = 1 } = body
  // Adding 0 turns the -0 of JSON into 0.
  const request = { userId, apiKey, clientIp, tenantId, resource, method, tokens: tokens + 0 }
  // The fields that are needed were just found.
  return { ok: true, request: request as ValidCheckRequest<Needed> }
}

/** The common case on its own, because most bodies are right: one look at each member. */
function isValid(body: object, needed: readonly CheckField[]): body is CheckRequest {
  for (const name of Object.keys(body)) {
    if (FIELDS.get(name)?.accepts((body as Record<string, unknown>)[name]) !== true) return false
  }
  return Object.hasOwn(body, 'resource') && needed.every((field) => Object.hasOwn(body, field))
}

function problemsOf(
  body: object,
  needed: readonly CheckField[],
): { readonly problems: readonly FieldProblem[]; readonly unlisted: number } {
  const values = new Map<string, unknown>(Object.entries(body))
  const problems: FieldProblem[] = []
  for (const [name, { accepts, expected, isPrivate }] of FIELDS) {
    const isNeeded = name === 'resource' || (needed as readonly string[]).includes(name)
    const isWrong = values.has(name) ? !accepts(values.get(name)) : isNeeded
    const received = describeReceived(values.get(name), isPrivate)
    if (isWrong) problems.push({ path: pointerTo(name), received, expected })
  }
  const unknown = [...values.keys()].filter((name) => !FIELDS.has(name))
  for (const name of unknown.slice(0, MOST_UNKNOWN_LISTED)) {
    const expected = `only ${[...FIELDS.keys()].join(', ')}`
    problems.push({ path: pointerTo(name), received: 'an unknown field', expected })
  }
  return { problems, unlisted: Math.max(0, unknown.length - MOST_UNKNOWN_LISTED) }
}

function identity(longest: number): Field {
  return {
    accepts: (value) => isText(value, longest),
    expected: `a text of 1 to ${longest} characters and no control characters`,
    isPrivate: true,
  }
}

/**
 * Control characters would break log lines. Half a surrogate pair has no UTF-8 form: written to a store it would turn
 * into U+FFFD, and two callers would share a counter.
 */
function isText(value: unknown, longest: number): value is string {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= longest &&
    value.isWellFormed() &&
    !CONTROL_CHARACTER.test(value)
  )
}
