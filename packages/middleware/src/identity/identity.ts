import { joinKey, SluiceError } from '@sluice/core'
import { parseIp, sha256 } from '@sluice/core/internal'
import type { HttpRequest } from '../http/http-request.ts'
import { isPromise, type MaybePromise } from '../http/maybe-promise.ts'

/** Who a request counts for. The same value of two kinds is two callers. */
export interface Identity {
  /** `ip`, `user`, `apiKey`, or a word of your own. */
  readonly kind: string
  /** A user's id, an address; of any length. Those that are too long for a key are counted under their hash. */
  readonly value: string
}

/** What may say who a request counts for: a text, an identity, or nothing, and then the address of the client counts. */
export type IdentityAnswer = string | Identity | undefined

/**
 * Says who a request counts for. It must not be something that a client can choose, such as a header that nobody has
 * verified: a caller with as many names as it likes has no limit.
 */
export type KeyFunction<Context> = (context: Context, request: HttpRequest) => MaybePromise<IdentityAnswer>

/** Where the identity of a request comes from: `'ip'` is the address of the client, as the trusted proxies know it. */
export type KeySource<Context> = 'ip' | KeyFunction<Context>

/** Longer values, in UTF-16 code units, are counted under their hash. */
const LONGEST_VALUE = 512

const IP_PART = joinKey(['ip'])
const TEXT_PART = joinKey(['key'])

/** All requests of which nothing is known count as one caller. */
const NOBODY: Identity = Object.freeze({ kind: 'unknown', value: '' })

/**
 * Counts by user: `read` gives the id of the user that was authenticated before, or undefined when nobody was. Then the
 * address of the client counts.
 */
export function byUser<Context>(read: (context: Context) => MaybePromise<string | undefined>): KeyFunction<Context> {
  return byKind('user', read)
}

/**
 * Counts by an address that something else has found out, such as the framework or the platform: in all its forms, IPv6 by
 * network. What is no address is taken for nothing.
 */
export function byIp<Context>(read: (context: Context) => MaybePromise<string | undefined>): KeyFunction<Context> {
  return byKind('ip', read)
}

/**
 * Who a request counts for, from what a key function answered and the address of the client. Nothing, an empty text and an
 * `ip` that is no address leave it to the address. Throws `SLUICE_INVALID_KEY` for any other kind of value.
 */
export function identityOf(answer: unknown, address: string | undefined): Identity {
  return knownIdentity(answer) ?? fromAddress(address)
}

/** The same without an address: undefined where it is left to that. */
export function knownIdentity(answer: unknown): Identity | undefined {
  if (typeof answer === 'string' && answer !== '') return { kind: 'key', value: answer }
  if (answer === undefined || answer === null || answer === '') return undefined
  if (!isIdentity(answer)) throw invalid(answer)
  if (answer.value === '') return undefined
  if (answer.kind !== 'ip') return answer
  const found = parseIp(answer.value)
  return found === undefined ? undefined : { kind: 'ip', value: found.toString() }
}

/** Who is at an address, when nothing better is known. */
export function fromAddress(address: string | undefined): Identity {
  return address === undefined ? NOBODY : { kind: 'ip', value: address }
}

/** The key of an identity: different identities never have the same one, whatever their kinds and values hold. */
export function identityKey(identity: Identity): string {
  const { kind, value } = identity
  // Three parts can never be mistaken for two.
  if (value.length > LONGEST_VALUE) return joinKey([kind, 'sha256', sha256(value)])
  return `${kindPart(kind)}${value.length}:${value}`
}

/** How the keys of a kind begin, as {@link joinKey} writes it. Most requests have one of two kinds, whose parts are made once. */
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
    expected: 'a text, { kind, value } of two texts, or undefined to count by the address of the client',
    action: typeof received === 'number' ? 'Turn the number into a text: String(id).' : 'Answer with a stable id.',
  })
}

/** Also for whoever hands on the function that makes key functions: then it is called with a request. */
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
