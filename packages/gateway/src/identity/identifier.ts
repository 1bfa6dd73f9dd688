import type { Clock, Random, Timers } from '@sluice/core'
import { type CompiledTrust, clientAddress, compileTrust } from '@sluice/middleware/internal'
import type { GatewayOptionsConfig, JwtConfig } from '../config/gateway-config.ts'
import type { Caller, CallerAnswer, CallerRequest, Identifier, Unauthenticated } from './caller.ts'
import { ConsumerKeys, type Principal } from './consumer-keys.ts'
import { type PresentedCredentials, readCredentials, withoutKeys } from './credentials.ts'
import { type CountFailure, failedAuthentications } from './failed-authentications.ts'
import { IdentityHeaders } from './identity-headers.ts'
import { KeySet, type KeySetStats } from './key-set.ts'
import { readKeySource } from './key-source.ts'
import { isTokenProblem, type TokenAnswer, type TokenProblem, TokenVerifier } from './token-verifier.ts'

/** What the configuration says about callers. */
export type IdentityConfig = Pick<
  GatewayOptionsConfig,
  'trustedProxies' | 'forwardedHeader' | 'consumers' | 'keyHeaders' | 'jwt' | 'identityHeaders'
>

/** Why an authentication failed. */
export type AuthenticationFailure =
  | 'missing'
  | 'unreadable'
  | 'unknown-key'
  | 'invalid-token'
  | 'expired-token'
  | 'reserved-user'

/** What an identifier works with. */
export interface IdentifierParts {
  readonly clock: Clock
  readonly random: Random
  readonly timers: Timers
  /** Counts failed authentications. Default: in memory, 20 a minute for each address. */
  readonly countFailure?: CountFailure
  /** Called for each failure. Default: nothing. */
  readonly onFailure?: (failure: AuthenticationFailure, address: string | undefined) => void
  /** Called after each attempt to load the key set: with the error, or undefined. Default: nothing. */
  readonly onKeySet?: (error: Error | undefined) => void
  /** Reads the key set. Default: the URL or file of the configuration. */
  readonly readKeys?: (source: string) => Promise<string>
}

/** Default of `keyHeaders`. */
const KEY_HEADERS = ['authorization', 'x-api-key']

const CHALLENGE = 'Bearer realm="gateway"'

const UINT32_COUNT = 2 ** 32

const NO_CREDENTIAL =
  'This route needs an identity. Send a key or a token in the header "Authorization: Bearer <key or token>".'

const RESERVED_USER =
  'The user of the token has the name of a consumer of this gateway. Rename the consumer, or use its key.'

/**
 * Identifies callers by trusted proxies, keys of consumers and tokens. A credential that is presented and not valid is
 * never treated as none, also where authentication is optional: the caller would get the limits of another identity
 * without noticing.
 */
export class CredentialIdentifier implements Identifier {
  readonly removedHeaders: ReadonlySet<string>
  readonly #parts: IdentifierParts
  readonly #trust: CompiledTrust
  readonly #consumers: ConsumerKeys
  readonly #headers: IdentityHeaders
  readonly #credentialHeaders: readonly string[]
  readonly #countFailure: CountFailure
  readonly #jwks: string | undefined
  readonly #keySet: KeySet | undefined
  readonly #tokens: TokenVerifier | undefined

  /** `previous`: of the configuration before; its key set is used on if it comes from the same place. */
  constructor(config: IdentityConfig, parts: IdentifierParts, previous?: CredentialIdentifier) {
    const { trustedProxies = [], forwardedHeader: header, consumers = [], jwt } = config
    this.#parts = parts
    this.#trust = compileTrust({ proxies: trustedProxies, ...(header !== undefined && { header }) })
    this.#consumers = new ConsumerKeys(consumers)
    this.#headers = new IdentityHeaders(config.identityHeaders)
    this.#credentialHeaders = credentialHeaders(config)
    this.removedHeaders = new Set([...this.#headers.removed, ...this.#credentialHeaders])
    const counted = previous === undefined ? undefined : previous.#countFailure
    this.#countFailure = parts.countFailure ?? counted ?? failedAuthentications(parts)
    this.#jwks = jwt?.jwks
    if (jwt !== undefined) {
      this.#keySet = previous !== undefined && previous.#jwks === jwt.jwks ? previous.#keySet! : keySetOf(jwt, parts)
      this.#tokens = new TokenVerifier({ config: jwt, keys: this.#keySet, clock: parts.clock })
    }
  }

  /** How the key set of tokens stands. Undefined without one. */
  get keySet(): KeySetStats | undefined {
    return this.#keySet?.stats()
  }

  async start(): Promise<void> {
    await this.#keySet?.refresh()
  }

  /** Holds no timer and no connection. */
  async close(): Promise<void> {
    await Promise.resolve()
  }

  identify(request: CallerRequest, auth: 'required' | 'optional' | 'none'): CallerAnswer | Promise<CallerAnswer> {
    const ip = clientAddress(request, this.#trust)
    if (this.#credentialHeaders.length === 0) {
      return auth === 'required' ? this.#fail('missing', NO_CREDENTIAL, ip) : anonymous(ip, [])
    }
    if (auth === 'none') {
      const isKey = (key: string): boolean => this.#consumers.find(key) !== undefined
      return anonymous(ip, withoutKeys(request, this.#credentialHeaders, isKey))
    }
    const presented = readCredentials(request, this.#credentialHeaders)
    const { secret, problem, foreign } = presented
    if (problem !== undefined) return this.#fail('unreadable', `${problem} Send one key or one token.`, ip)
    if (secret === undefined) {
      return auth === 'required' ? this.#fail('missing', NO_CREDENTIAL, ip) : anonymous(ip, foreign)
    }
    const owner = this.#consumers.find(secret)
    if (owner !== undefined) return this.#known(ip, owner, foreign)
    return this.#identifyToken(presented, ip)
  }

  #identifyToken(presented: PresentedCredentials, ip: string | undefined): CallerAnswer | Promise<CallerAnswer> {
    const { secret = '', header, foreign } = presented
    if (this.#tokens === undefined || header !== 'authorization' || !looksLikeToken(secret)) {
      return this.#fail('unknown-key', 'There is no such key. Look whether it is complete, and of this gateway.', ip)
    }
    const conclude = (verified: TokenAnswer): CallerAnswer => {
      if (isTokenProblem(verified)) return this.#rejectToken(verified, ip)
      // Else a caller who can choose a name at the issuer would get the limits and overrides of a consumer.
      if (this.#consumers.hasName(verified.user)) return this.#fail('reserved-user', RESERVED_USER, ip)
      return this.#known(ip, verified, [...foreign, 'authorization', `Bearer ${secret}`])
    }
    const answer = this.#tokens.verify(secret)
    return answer instanceof Promise ? answer.then(conclude) : conclude(answer)
  }

  #known(ip: string | undefined, principal: Principal, passedOn: readonly string[]): Caller {
    const own = this.#headers.of(principal)
    const upstreamHeaders = passedOn.length === 0 ? own : [...own, ...passedOn]
    const { user, apiKey, tenant, tier } = principal
    return { ip, user, apiKey, tenant, tier, upstreamHeaders }
  }

  #rejectToken(problem: TokenProblem, ip: string | undefined): Unauthenticated {
    if (problem.reason === 'unavailable') {
      const retryAfterSeconds = Math.max(1, Math.ceil(problem.retryAfterMs / 1000))
      return { status: 503, challenge: '', detail: `${problem.detail} Try again.`, retryAfterSeconds }
    }
    const failure = problem.reason === 'expired' ? 'expired-token' : 'invalid-token'
    return this.#fail(failure, `The token is not accepted. ${problem.detail}`, ip)
  }

  #fail(failure: AuthenticationFailure, detail: string, ip: string | undefined): Unauthenticated {
    this.#parts.onFailure?.(failure, ip)
    // Who presents nothing guesses nothing.
    if (failure === 'missing') return { status: 401, challenge: CHALLENGE, detail }
    const retryAfterMs = this.#countFailure(ip ?? '')
    if (retryAfterMs === 0) return { status: 401, challenge: `${CHALLENGE}, error="invalid_token"`, detail }
    const retryAfterSeconds = Math.ceil(retryAfterMs / 1000)
    const limited = `Too many attempts with invalid credentials. Try again in ${retryAfterSeconds} seconds.`
    return { status: 429, challenge: '', detail: limited, retryAfterSeconds }
  }
}

function anonymous(ip: string | undefined, upstreamHeaders: readonly string[]): Caller {
  return { ip, user: undefined, apiKey: undefined, tenant: undefined, tier: undefined, upstreamHeaders }
}

/** Headers that the gateway reads credentials from. Without consumers and tokens it reads none. */
function credentialHeaders({ consumers = [], keyHeaders = KEY_HEADERS, jwt }: IdentityConfig): readonly string[] {
  const headers = new Set<string>()
  if (jwt !== undefined) headers.add('authorization')
  if (consumers.length > 0) for (const name of keyHeaders) headers.add(name.toLowerCase())
  return [...headers]
}

function keySetOf({ jwks }: JwtConfig, { clock, random, timers, readKeys, onKeySet }: IdentifierParts): KeySet {
  return new KeySet({
    read: () => readKeys?.(jwks) ?? readKeySource(jwks, timers),
    clock,
    random: () => random.nextUint32() / UINT32_COUNT,
    ...(onKeySet !== undefined && { onLoad: onKeySet }),
  })
}

/** Three parts with dots between: keys of consumers need not have that form, tokens always have. */
function looksLikeToken(secret: string): boolean {
  const first = secret.indexOf('.')
  const second = secret.indexOf('.', first + 1)
  return first > 0 && second > first + 1 && !secret.includes('.', second + 1)
}
