import { SluiceError } from '@sluice/core'
import { MatchCache, sha256 } from '@sluice/core/internal'
import { checkOptionNames, type OptionTaker } from '@sluice/core/options'
import type { HttpRequest } from '../http/http-request.ts'
import { isPromise, type MaybePromise } from '../http/maybe-promise.ts'
import { type HeaderLines, trimBlanks } from './forwarded-header.ts'
import type { IdentityAnswer, KeyFunction } from './identity.ts'

/** Result of `verify`: id of the key or its owner; anything else means that the key is invalid. */
export type VerifiedKey = string | undefined | null | false

/** How API keys are read and verified. */
export interface ApiKeyOptions<Context> {
  /**
   * Header with the key. `authorization` holds `<scheme> <key>`; any other header holds only the key. Default:
   * `authorization`.
   */
  readonly header?: string
  /** Authorization scheme, case-insensitive. Default: `Bearer`. */
  readonly scheme?: string
  /**
   * Returns a stable id of the key's owner, such as a database id. Return undefined for an invalid key: the request
   * then counts by client address, so that made-up keys get no counters. Exceptions go to the framework. Called for
   * every request with a key: cache slow lookups.
   */
  readonly verify: (key: string, context: Context) => MaybePromise<VerifiedKey>
}

const TAKER: OptionTaker = {
  name: 'byApiKey',
  options: ['header', 'scheme', 'verify'],
  example: '{ verify: (key) => ownerOf(key) }',
  otherNames: { name: 'header', prefix: 'scheme', validate: 'verify', lookup: 'verify' },
}

/** Cache of owner hashes: hashing takes longer than deciding. */
const MOST_OWNERS = 4096
const LONGEST_OWNER = 256

/** Longer values, in UTF-16 code units, are not keys. */
const LONGEST_KEY = 8192

const TOKEN = /^[!#$%&'*+.^_`|~\da-z-]+$/i
/** Scheme and credentials, separated by spaces or tabs. */
const CREDENTIALS = /^([!#$%&'*+.^_`|~\da-z-]+)[ \t]+([^ \t].*)$/i
const QUOTED = /^"((?:[^"\\]|\\.)*)"$/
/** A key is one word of visible characters without quotes. */
const KEY = /^[\x21\x23-\x7e]+$/

/**
 * Counts by verified API key. The counter key is a hash of what `verify` returned: neither key nor owner id reaches the
 * store.
 */
export function byApiKey<Context>(options: ApiKeyOptions<Context>): KeyFunction<Context> {
  checkOptionNames(options, TAKER)
  const { header = 'authorization', scheme = 'Bearer', verify } = options
  if (typeof verify !== 'function') {
    throw invalid('"verify" is missing', verify, 'a function from a key to the id of its owner')
  }
  if (!isToken(header)) throw invalid('"header" cannot be used', header, 'the name of a header')
  if (!isToken(scheme)) throw invalid('"scheme" cannot be used', scheme, 'one word, such as Bearer')
  const name = header.toLowerCase()
  if (name !== 'authorization' && options.scheme !== undefined) {
    throw invalid('"scheme" has no meaning for this header', header, 'it beside "authorization" only')
  }
  const expected = name === 'authorization' ? scheme.toLowerCase() : undefined
  const hashes = new MatchCache<string>(1, MOST_OWNERS)
  const identify = (verified: unknown): IdentityAnswer => identityOfKey(verified, hashes)
  return (context, request) => {
    const key = presentedKey(request, name, expected)
    if (key === undefined) return undefined
    const verified = verify(key, context)
    return isPromise(verified) ? verified.then(identify) : identify(verified)
  }
}

/** The key of a request, normalized. Undefined if missing or ambiguous. */
function presentedKey(request: HttpRequest, header: string, scheme: string | undefined): string | undefined {
  const line = singleLine(request.header(header))
  if (line === undefined) return undefined
  if (scheme === undefined) return keyIn(line)
  const credentials = credentialsIn(line)
  return credentials?.scheme === scheme ? credentials.key : undefined
}

/** Credentials of an `Authorization` header. */
export interface Credentials {
  /** In lower case. */
  readonly scheme: string
  /** Normalized. Undefined if it is not one word. */
  readonly key: string | undefined
}

/** Scheme and key of an `Authorization` header. Undefined if there is no scheme. */
export function credentialsIn(line: string): Credentials | undefined {
  if (line.length > LONGEST_KEY) return undefined
  const found = CREDENTIALS.exec(trimBlanks(line))
  return found === null ? undefined : { scheme: found[1]!.toLowerCase(), key: wordOf(found[2]!) }
}

/** The key in a header that holds only a key, normalized. Undefined if it is not one word. */
export function keyIn(line: string): string | undefined {
  return line.length > LONGEST_KEY ? undefined : wordOf(trimBlanks(line))
}

function isToken(text: unknown): boolean {
  return typeof text === 'string' && TOKEN.test(text)
}

function wordOf(text: string): string | undefined {
  const quoted = QUOTED.exec(text)
  const word = quoted === null ? text : quoted[1]!.replaceAll(/\\(.)/g, '$1')
  return KEY.test(word) ? word : undefined
}

/**
 * The one value of a header. A header sent twice with different values is ambiguous: other parties may choose either.
 */
export function singleLine(lines: HeaderLines): string | undefined {
  if (lines === undefined || typeof lines === 'string') return lines
  return lines.every((line) => line === lines[0]) ? lines[0] : undefined
}

function identityOfKey(verified: unknown, hashes: MatchCache<string>): IdentityAnswer {
  if (verified === undefined || verified === null || verified === false || verified === '') return undefined
  if (typeof verified === 'string') return { kind: 'apiKey', value: hashOf(verified, hashes) }
  throw new SluiceError('SLUICE_INVALID_KEY', {
    problem: 'what "verify" answered cannot be used',
    received: verified,
    expected: 'a string that stands for the owner of the key, or undefined when the key is not valid',
    action: verified === true ? 'Answer with an id, not with yes or no.' : 'Answer with a stable id.',
  })
}

function hashOf(owner: string, hashes: MatchCache<string>): string {
  if (owner.length > LONGEST_OWNER) return sha256(owner)
  const known = hashes.get(0, owner)
  if (known !== undefined) return known
  const hash = sha256(owner)
  hashes.add(0, owner, hash)
  return hash
}

function invalid(problem: string, received: unknown, expected: string): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', { problem: `byApiKey: ${problem}`, received, expected })
}
