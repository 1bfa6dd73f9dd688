import { hash } from 'node:crypto'
import type { Clock } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { CompactJWSHeaderParameters, JWTPayload, JWTVerifyOptions } from 'jose'
import { decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import type { JwtConfig } from '../config/gateway-config.ts'
import { TOKEN_ALGORITHMS } from '../config/gateway-config.ts'
import type { Principal } from './consumer-keys.ts'
import { type KeySet, KeySetUnavailable } from './key-set.ts'

/** Why a token is not accepted. `unavailable` says nothing about the token. */
export type TokenProblem =
  | { readonly reason: 'invalid' | 'expired'; readonly detail: string }
  | { readonly reason: 'unavailable'; readonly detail: string; readonly retryAfterMs: number }

/** The result of a verification. */
export type TokenAnswer = Principal | TokenProblem

/** Whether a token was not accepted. */
export function isTokenProblem(answer: TokenAnswer): answer is TokenProblem {
  return 'reason' in answer
}

/** Clocks of issuers may be off by this much. */
const LEEWAY_SECONDS = 5

/** Verified tokens that are remembered. */
const MOST_TOKENS = 8192

const MS_PER_SECOND = 1000

/** What a {@link TokenVerifier} works with. */
export interface TokenVerifierParts {
  readonly config: JwtConfig
  readonly keys: KeySet
  readonly clock: Clock
  /** Verified tokens that are remembered. Default: 8192. */
  readonly maxTokens?: number
}

interface Verified {
  readonly principal: Principal
  readonly untilMs: number
  readonly revision: number
}

/**
 * Verifies JSON Web Tokens. A verified token is remembered by the digest of all of it, until it expires or the issuer
 * has other keys. Tokens without `exp` are not accepted.
 */
export class TokenVerifier {
  readonly #keys: KeySet
  readonly #clock: Clock
  readonly #config: JwtConfig
  readonly #algorithms: ReadonlySet<string>
  readonly #maxTokens: number
  /** The one that was used longest ago first. */
  readonly #verified = new Map<string, Verified>()
  readonly #pending = new Map<string, Promise<TokenAnswer>>()

  /** Throws `SLUICE_INVALID_OPTION` for an algorithm that is not allowed. */
  constructor({ config, keys, clock, maxTokens = MOST_TOKENS }: TokenVerifierParts) {
    this.#config = config
    this.#keys = keys
    this.#clock = clock
    this.#algorithms = allowedAlgorithms(config.algorithms)
    this.#maxTokens = maxTokens
  }

  /** Tokens that are remembered. */
  get size(): number {
    return this.#verified.size
  }

  /** Whose token this is. Synchronous if it was verified before, or if a look at it says that it is not valid. */
  verify(token: string): TokenAnswer | Promise<TokenAnswer> {
    const digest = hash('sha256', token, 'base64')
    const known = this.#verified.get(digest)
    if (known !== undefined) {
      this.#verified.delete(digest)
      if (known.revision === this.#keys.revision && this.#nowMs() < known.untilMs) {
        this.#verified.set(digest, known)
        // Keys that are loaded again while tokens are known end sessions whose key was withdrawn.
        void this.#keys.refresh()
        return known.principal
      }
    }
    const pending = this.#pending.get(digest)
    if (pending !== undefined) return pending
    const problem = this.#problemOf(token)
    if (problem !== undefined) return problem
    const verification = this.#check(token, digest).finally(() => this.#pending.delete(digest))
    this.#pending.set(digest, verification)
    return verification
  }

  /** What can be said without a key. So an unknown key id in a token of another issuer causes no request. */
  #problemOf(token: string): TokenProblem | undefined {
    let header: { readonly alg?: unknown }
    let claims: JWTPayload
    try {
      header = decodeProtectedHeader(token)
      claims = decodeJwt(token)
    } catch {
      return invalid('It is not a JSON Web Token.')
    }
    if (typeof header.alg !== 'string' || !this.#algorithms.has(header.alg)) {
      return invalid('Its algorithm is not allowed.')
    }
    const { issuer, audience } = this.#config
    if (issuer !== undefined && claims.iss !== issuer) return invalid('It is of another issuer.')
    if (audience !== undefined && !isFor(claims.aud, audience)) return invalid('It is for another audience.')
    const nowSeconds = this.#nowMs() / MS_PER_SECOND
    const { exp, nbf } = claims
    if (typeof exp !== 'number') return invalid('It has no "exp".')
    if (exp + LEEWAY_SECONDS <= nowSeconds) return { reason: 'expired', detail: 'It has expired.' }
    if (nbf !== undefined && !(nbf - LEEWAY_SECONDS <= nowSeconds)) return invalid('It is not valid yet.')
    return undefined
  }

  async #check(token: string, digest: string): Promise<TokenAnswer> {
    try {
      const { claims, revision } = await this.#verifySignature(token)
      const principal = this.#principalOf(claims)
      if (!isTokenProblem(principal))
        this.#remember(digest, { principal, untilMs: claims.exp! * MS_PER_SECOND, revision })
      return principal
    } catch (error) {
      if (error instanceof KeySetUnavailable) {
        const detail = 'The keys of the issuer are not known yet.'
        return { reason: 'unavailable', detail, retryAfterMs: error.retryAfterMs }
      }
      return invalid('Its signature or its claims are not valid.')
    }
  }

  /** Rejects with an error of jose, or {@link KeySetUnavailable}. */
  async #verifySignature(token: string): Promise<{ readonly claims: JWTPayload; readonly revision: number }> {
    const { issuer, audience } = this.#config
    const options: JWTVerifyOptions = {
      algorithms: [...this.#algorithms],
      ...(issuer !== undefined && { issuer }),
      ...(audience !== undefined && { audience: typeof audience === 'string' ? audience : [...audience] }),
      clockTolerance: LEEWAY_SECONDS,
      currentDate: new Date(this.#nowMs()),
      requiredClaims: ['exp'],
    }
    const keys = await this.#keys.find(decodeProtectedHeader(token) as CompactJWSHeaderParameters)
    // Other keys may come while the signature is verified. What is remembered belongs to these.
    const { revision } = this.#keys
    let failure: unknown = new Error('no key')
    for (const key of keys) {
      try {
        return { claims: (await jwtVerify(token, key, options)).payload, revision }
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  #principalOf(claims: JWTPayload): TokenAnswer {
    const { user: userClaim = 'sub', tenant, tier } = this.#config.claims ?? {}
    const user = claimText(claims, userClaim)
    if (user === undefined) return invalid(`It has no "${userClaim}".`)
    return {
      user,
      apiKey: undefined,
      tenant: tenant === undefined ? undefined : claimText(claims, tenant),
      tier: tier === undefined ? undefined : claimText(claims, tier),
    }
  }

  #remember(digest: string, verified: Verified): void {
    if (this.#verified.size >= this.#maxTokens) {
      for (const oldest of this.#verified.keys()) {
        this.#verified.delete(oldest)
        break
      }
    }
    this.#verified.set(digest, verified)
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / MICROS_PER_MS
  }
}

function invalid(detail: string): TokenProblem {
  return { reason: 'invalid', detail }
}

function isFor(audience: unknown, wanted: string | readonly string[]): boolean {
  const named = Array.isArray(audience) ? audience : [audience]
  const accepted = typeof wanted === 'string' ? [wanted] : wanted
  return named.some((name) => accepted.includes(name as string))
}

/** The claim of this name, or at this path such as `app.tier`. Undefined if it is neither text nor a number. */
function claimText(claims: JWTPayload, path: string): string | undefined {
  const value = Object.hasOwn(claims, path) ? claims[path] : claimAt(claims, path)
  if (typeof value === 'string') return value === '' ? undefined : value
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : undefined
}

function claimAt(claims: JWTPayload, path: string): unknown {
  let value: unknown = claims
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[name]
  }
  return value
}

function allowedAlgorithms(algorithms: readonly string[] = TOKEN_ALGORITHMS): ReadonlySet<string> {
  for (const algorithm of algorithms) {
    if (TOKEN_ALGORITHMS.includes(algorithm)) continue
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'an algorithm of "jwt" is not allowed',
      received: algorithm,
      expected: TOKEN_ALGORITHMS.join(', '),
      action: 'Use a signature with a public key. "none" proves nothing, and "HS256" would let everyone sign.',
    })
  }
  return new Set(algorithms)
}
