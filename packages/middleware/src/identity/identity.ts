import { joinKey, SluiceError } from '@sluice/core'
import { parseIp, sha256 } from '@sluice/core/internal'
import type { HttpRequest } from '../http/http-request.ts'
import { isPromise, type MaybePromise } from '../http/maybe-promise.ts'

/** Who a request counts for. Equal values of different kinds are different callers. */
export interface Identity {
  /** `ip`, `user`, `apiKey` or a custom word. */
  readonly kind: string
  /** User id, address, etc., of any length. Long values are hashed. */
  readonly value: string
}

/** Result of a key function: a string, an identity, or undefined to count by client address. */
export type IdentityAnswer = string | Identity | undefined

/**
 * Returns who a request counts for. Never use a value that clients choose, such as an unverified header: a caller with
 * unlimited names has no limit.
 */
export type KeyFunction<Context> = (context: Context, request: HttpRequest) => MaybePromise<IdentityAnswer>

/** Source of the identity. `'ip'` is the client address as reported by trusted proxies. */
export type KeySource<Context> = 'ip' | KeyFunction<Context>

/** Longer values, in UTF-16 code units, are hashed. */
const LONGEST_VALUE = 512

const IP_PART = joinKey(['ip'])
const TEXT_PART = joinKey(['key'])

/** All requests without identity and address share one counter. */
const UNKNOWN: Identity = Object.freeze({ kind: 'unknown', value: '' })

/** Counts by user. `read` returns the id of the authenticated user, or undefined to count by client address. */
export function byUser<Context>(read: (context: Context) => MaybePromise<string | undefined>): KeyFunction<Context> {
  return byKind('user', read)
}

/**
 * Counts by an address from another source, such as the framework or the platform. Normalizes it and groups IPv6 by
 * network. Invalid addresses are ignored.
 */
export function byIp<Context>(read: (context: Context) => MaybePromise<string | undefined>): KeyFunction<Context> {
  return byKind('ip', read)
}

/**
 * Identity from the result of a key function, else from the client address. Undefined, an empty string and an invalid
 * `ip` fall back to the address. Throws `SLUICE_INVALID_KEY` for any other value.
 */
export function identityOf(answer: unknown, address: string | undefined): Identity {
  return knownIdentity(answer) ?? fromAddress(address)
}

/** Like {@link identityOf} without an address: undefined if the address decides. */
export function knownIdentity(answer: unknown): Identity | undefined {
  if (typeof answer === 'string' && answer !== '') return { kind: 'key', value: answer }
  if (answer === undefined || answer === null || answer === '') return undefined
  if (!isIdentity(answer)) throw invalid(answer)
  if (answer.value === '') return undefined
  if (answer.kind !== 'ip') return answer
  const found = parseIp(answer.value)
  return found === undefined ? undefined : { kind: 'ip', value: found.toString() }
}

/** Identity of an address. Unknown addresses share one identity. */
export function fromAddress(address: string | undefined): Identity {
  return address === undefined ? UNKNOWN : { kind: 'ip', value: address }
}

/** Key of an identity. Distinct identities have distinct keys. */
export function identityKey(identity: Identity): string {
  const { kind, value } = identity
  // Three parts can never be mistaken for two.
  if (value.length > LONGEST_VALUE) return joinKey([kind, 'sha256', sha256(value)])
  return `${kindPart(kind)}${value.length}:${value}`
}

/** Key prefix of a kind, as {@link joinKey} writes it. The two usual prefixes are precomputed. */
function kindPart(kind: string): string {
  if (kind === 'ip') return IP_PART
  return kind === 'key' ? TEXT_PART : joinKey([kind])
}

function byKind<Context>(
  kind: string,
  read: (context: Context) => MaybePromise<string | undefined>,
): KeyFunction<Context> {
  if (typeof read !== 'function') throw noReader(kind, read)
  const identified = (value: unknown): IdentityAnswer => {
    if (value === undefined || value === null || value === '') return undefined
    if (typeof value !== 'string') throw invalid(value)
    return { kind, value }
  }
  return (context) => {
    const value = read(context)
    return isPromise(value) ? value.then(identified) : identified(value)
  }
}

function isIdentity(answer: unknown): answer is Identity {
  if (typeof answer !== 'object' || answer === null) return false
  const { kind, value } = answer as Partial<Identity>
  return typeof kind === 'string' && kind !== '' && kind.length <= LONGEST_VALUE && typeof value === 'string'
}

function invalid(received: unknown): SluiceError {
  return new SluiceError('SLUICE_INVALID_KEY', {
    problem: 'what the key function answered cannot be used',
    received,
    expected: 'a string, { kind, value } of two strings, or undefined to count by the address of the client',
    action: typeof received === 'number' ? 'Turn the number into a string: String(id).' : 'Answer with a stable id.',
  })
}

/** Also covers passing `byUser` itself as a key function: it is then called with a request. */
function noReader(kind: string, received: unknown): SluiceError {
  const [name, example] =
    kind === 'ip' ? ['byIp', '(request) => request.ip'] : ['byUser', '(request) => request.user?.id']
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `${name} was not told how to find out who calls`,
    received,
    expected: `a function such as ${example}`,
    action: `Write: key: ${name}(${example})`,
  })
}
