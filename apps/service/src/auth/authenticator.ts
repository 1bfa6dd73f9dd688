import { hash, timingSafeEqual } from 'node:crypto'
import type { ApiKey, ApiKeyRole, ConfigTarget, EntryChange } from '@sluice/config-store'
import { mayDo } from '@sluice/contract'
import type { Clock, Random, SharedMemoryHandle } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { Logger } from '@sluice/runtime'
import { keyDigest } from '@sluice/runtime'
import type { Answer, Principal } from '../operations/handler.ts'
import { problemAnswer } from '../operations/problems.ts'
import { FailedAttempts } from './failed-attempts.ts'
import type { RequestOrigin } from './request-origin.ts'
import { ClientAddresses } from './request-origin.ts'

/** A key as the change feed delivers it. */
export interface KnownApiKey extends ApiKey {
  /** SHA-256 of its secret, in hexadecimal digits. */
  readonly secretHash: string
}

/**
 * The last known API keys, kept up to date by the change feed: `engineTarget(engine, { others: keys })`. So no request
 * waits for the database, a revoked key is rejected here with the next change, and keys keep working while the database
 * is unreachable.
 */
export class ApiKeyCache implements Pick<ConfigTarget, 'apply' | 'beginReload' | 'endReload'> {
  #keys = new Map<string, KnownApiKey>()
  /** The entries since a reload began; undefined without a reload in progress. */
  #reloaded: Map<string, KnownApiKey> | undefined
  #isLoaded = false

  /** Whether the keys are known: false until something was loaded, from any source. */
  get isLoaded(): boolean {
    return this.#isLoaded
  }

  get size(): number {
    return this.#keys.size
  }

  /** The key with this id, even if it has expired. */
  find(id: string): KnownApiKey | undefined {
    return this.#keys.get(id)
  }

  apply(changes: readonly EntryChange[]): void {
    for (const change of changes) {
      if (change.kind !== 'api-key') continue
      put(this.#keys, change.key, change.entry)
      if (this.#reloaded !== undefined) put(this.#reloaded, change.key, change.entry)
    }
  }

  beginReload(): void {
    this.#reloaded = new Map()
  }

  endReload(): void {
    if (this.#reloaded !== undefined) this.#keys = this.#reloaded
    this.#reloaded = undefined
    this.#isLoaded = true
  }
}

function put(keys: Map<string, KnownApiKey>, id: string, key: KnownApiKey | undefined): void {
  if (key === undefined) keys.delete(id)
  else keys.set(id, key)
}

/** Dependencies of an {@link Authenticator}. */
export interface AuthenticatorParts {
  readonly keys: ApiKeyCache
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Secret of the digests that replace addresses and ids in the log; read at each use. */
  readonly secret: Uint8Array
  /** Where the threads of a process count failed attempts together; undefined for a thread that counts alone. */
  readonly failures?: SharedMemoryHandle | undefined
  /** Finds the client address behind trusted proxies. Default: no proxy is trusted. */
  readonly addresses?: ClientAddresses
}

/** Why a caller was rejected, for the log. */
type Rejection = 'no-key' | 'unreadable' | 'no-token' | 'unknown' | 'revoked' | 'expired'

const CHALLENGE = 'Bearer realm="sluice"'

const HOW_TO = 'Send an API key in the header "Authorization: Bearer slk_<id>_<secret>".'

const DETAILS: Readonly<Record<Rejection, string>> = {
  'no-key': `This needs an API key. ${HOW_TO}`,
  unreadable: `The Authorization header has no API key in it. ${HOW_TO}`,
  'no-token': 'This is no API key. One looks like slk_<id>_<secret>.',
  unknown: 'There is no such API key. Look whether it is complete, and of this service.',
  revoked: 'This API key was revoked. Use another one.',
  expired: 'This API key has ended. Use the one that took its place, or have one made.',
}

/**
 * Authenticates callers by API key, without a query to the database. A valid key is always accepted, whatever others
 * did: its secret has 256 bits and cannot be guessed, and rejecting it would let an attacker lock the operators out.
 * Failed attempts are counted, and rejected with 429 beyond the limits of {@link FailedAttempts}. Answer and duration
 * are the same for an unknown key and for a wrong secret.
 */
export class Authenticator {
  readonly #keys: ApiKeyCache
  readonly #clock: Clock
  readonly #log: Logger
  readonly #secret: Uint8Array
  readonly #failures: FailedAttempts
  readonly #addresses: ClientAddresses

  constructor({ keys, clock, random, log, secret, failures, addresses }: AuthenticatorParts) {
    this.#keys = keys
    this.#clock = clock
    this.#log = log
    this.#secret = secret
    this.#failures = new FailedAttempts({ clock, random, shared: failures })
    this.#addresses = addresses ?? new ClientAddresses([])
  }

  /**
   * The caller, if the role of its key suffices. Otherwise a problem: 401, 403, 429, or 503 while no keys are known.
   * `needed`: the required role; `none` for any valid key.
   */
  authenticate(request: RequestOrigin, needed: ApiKeyRole): Principal | Answer {
    const { authorization } = request.headers
    if (authorization === undefined) return unauthorized('no-key')
    const token = readToken(BEARER.exec(authorization)?.[1] ?? '')
    return token === undefined ? this.#reject('unreadable', undefined, request) : this.#check(token, request, needed)
  }

  /** The same for a key that is not in the header. */
  authenticateKey(apiKey: string, request: RequestOrigin, needed: ApiKeyRole): Principal | Answer {
    const token = readToken(apiKey.trim())
    return token === undefined ? this.#reject('no-token', undefined, request) : this.#check(token, request, needed)
  }

  #check(token: ReadToken, request: RequestOrigin, needed: ApiKeyRole): Principal | Answer {
    const key = this.#keys.find(token.id)
    const rejection = this.#rejectionOf(token, key)
    if (rejection !== undefined && !this.#keys.isLoaded) return notLoaded()
    if (rejection !== undefined || key === undefined) return this.#reject(rejection ?? 'unknown', token.id, request)
    if (!mayDo(key.role, needed)) return forbidden(key.role, needed)
    return { id: key.id, name: key.name, role: key.role, tenant: key.tenant }
  }

  /** Counts a failed attempt elsewhere, see {@link FailedAttempts}. */
  countFailure(address: string): number {
    return this.#failures.count({ address, keyId: undefined })
  }

  #rejectionOf(token: ReadToken, key: KnownApiKey | undefined): Rejection | undefined {
    if (!hasSecret(token, key?.secretHash) || key === undefined) return 'unknown'
    if (key.revokedAt !== undefined) return 'revoked'
    const nowMs = this.#clock.nowMicros() / MICROS_PER_MS
    return key.expiresAt !== undefined && key.expiresAt <= nowMs ? 'expired' : undefined
  }

  #reject(rejection: Rejection, keyId: string | undefined, request: RequestOrigin): Answer {
    const address = this.#addresses.of(request)
    const retryAfterMs = this.#failures.count({ address, keyId })
    if (this.#log.isEnabled('warn')) {
      this.#log.warn('an API key was rejected', {
        reason: rejection,
        limited: retryAfterMs > 0,
        address: this.#digest(address),
        // A digest, not the id: some clients send the secret in its place.
        ...(keyId === undefined ? {} : { key: this.#digest(keyId) }),
      })
    }
    return retryAfterMs > 0 ? tooManyFailures(retryAfterMs) : unauthorized(rejection)
  }

  #digest(text: string): string {
    return keyDigest(text, Buffer.from(this.#secret).toString('hex'))
  }
}

function unauthorized(rejection: Rejection): Answer {
  const challenge = rejection === 'no-key' ? CHALLENGE : `${CHALLENGE}, error="invalid_token"`
  return rejectionAnswer('SLUICE_HTTP_UNAUTHORIZED', DETAILS[rejection], { 'WWW-Authenticate': challenge })
}

/** The answer to a caller with an insufficient role. */
export function forbidden(role: ApiKeyRole, needed: ApiKeyRole): Answer {
  const detail = `This API key has the role "${role}". Use one with the role "${needed}", or a higher one.`
  const challenge = `${CHALLENGE}, error="insufficient_scope", scope="${needed}"`
  return rejectionAnswer('SLUICE_HTTP_FORBIDDEN', detail, { 'WWW-Authenticate': challenge })
}

function tooManyFailures(retryAfterMs: number): Answer {
  const seconds = Math.ceil(retryAfterMs / 1000)
  const detail = `Too many attempts with invalid API keys. Try again in ${seconds} seconds, with a valid one.`
  return rejectionAnswer('SLUICE_HTTP_TOO_MANY_FAILURES', detail, { 'Retry-After': String(seconds) })
}

function notLoaded(): Answer {
  const detail = 'No API keys are known yet: the configuration is still being loaded. Try again.'
  return rejectionAnswer('SLUICE_HTTP_CONFIG_UNAVAILABLE', detail, { 'Retry-After': '1' })
}

function rejectionAnswer(
  code: Parameters<typeof problemAnswer>[0],
  detail: string,
  headers: Readonly<Record<string, string>>,
): Answer {
  return problemAnswer(code, { detail, headers: { ...headers, 'Cache-Control': 'no-store' } })
}

/** The parts of a token: its key, and a hash of its secret. */
export interface ReadToken {
  /** `slk_<id>`, the visible part. */
  readonly id: string
  /** SHA-256 of the secret. */
  readonly secretHash: Buffer
}

const TOKEN = /^(slk_[0-9A-Za-z]{1,64})_([0-9A-Za-z]{1,256})$/

const BEARER = /^Bearer +(\S+) *$/i

/** Compared with if there is no such key, so that it takes the same time. */
const UNKNOWN_KEY_HASH = hashSecret('').toString('hex')

/** The parts of a token; undefined if it does not look like one. */
function readToken(text: string): ReadToken | undefined {
  const [, id, secret] = TOKEN.exec(text) ?? []
  return id === undefined || secret === undefined ? undefined : { id, secretHash: hashSecret(secret) }
}

/**
 * Whether a token has the secret of a key, whose hash is stored in hexadecimal digits. Takes the same time wherever
 * they differ, and for an unknown key.
 */
function hasSecret({ secretHash }: ReadToken, kept: string | undefined): boolean {
  const isEqual = timingSafeEqual(secretHash, Buffer.from(kept ?? UNKNOWN_KEY_HASH, 'hex'))
  return isEqual && kept !== undefined
}

function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}
