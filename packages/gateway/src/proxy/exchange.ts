import type { Random, Timers } from '@sluice/core'
import type { HttpLimiter, HttpOutcome, HttpRequest } from '@sluice/middleware'
import type { Logger } from '@sluice/runtime'
import type { RoutedRequest } from '../config/compiled-config.ts'
import type { ClientConnection } from '../http/connection.ts'
import { type GatewayAnswer, problemAnswer } from '../http/problems.ts'
import { knownRequestId } from '../http/request-headers.ts'
import { hostOf, isAuthority, originForm } from '../http/request-target.ts'
import { type Caller, type CallerAnswer, isUnauthenticated, type Unauthenticated } from '../identity/caller.ts'
import type { MessageLimits } from '../limits/message-limits.ts'
import { NOT_SENT } from '../limits/request-limits.ts'
import type { AccessLog } from '../observability/access-log.ts'
import type { GatewayMetrics } from '../observability/gateway-metrics.ts'
import type { BalancedRequest } from '../upstreams/upstream.ts'
import type { ActiveConfig, ActiveRoute } from './active-config.ts'
import type { ExchangeWatch } from './exchange-watch.ts'

/** What all exchanges of a gateway share. */
export interface ExchangeParts {
  readonly limits: Pick<HttpLimiter<Exchange>, 'begin'>
  readonly messageLimits: MessageLimits
  readonly timers: Timers
  readonly random: Random
  /** Milliseconds since some instant; never goes back. */
  readonly monotonicMs: () => number
  readonly newRequestId: () => string
  readonly metrics: GatewayMetrics
  readonly accessLog: AccessLog
  readonly logger: Logger
  readonly watch: ExchangeWatch
  /** Whether the gateway can serve; for health paths. */
  readonly isReady: () => boolean
}

const NO_ROUTE = problemAnswer('not-found', 'No configured route matches host, path, method and headers.')
const AMBIGUOUS = problemAnswer(
  'invalid-target',
  'Servers read this path in different ways, and these lead to different routes. Send it without encoded separators.',
)
const INVALID_TARGET = problemAnswer(
  'invalid-target',
  'Send the target as /path?query with exactly one valid Host header that names the same authority.',
)
const LIMITS_UNAVAILABLE = problemAnswer(
  'limits-unavailable',
  'The request was not let through, because its limits could not be checked. Try again in 1 second.',
  ['Retry-After', '1'],
)
const HEALTH_HEADERS = ['Content-Type', 'application/json', 'Cache-Control', 'no-store']
const READY: GatewayAnswer = { status: 200, headers: HEALTH_HEADERS, body: '{"status":"ok"}\n' }
const NOT_READY: GatewayAnswer = { status: 503, headers: HEALTH_HEADERS, body: '{"status":"unavailable"}\n' }

/**
 * One request from its arrival to its end: which route it takes, who sends it, whether it is allowed. How it is sent on
 * is decided by what extends it.
 */
export abstract class Exchange implements HttpRequest, BalancedRequest {
  readonly parts: ExchangeParts
  readonly active: ActiveConfig
  readonly method: string
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[]
  readonly connection: ClientConnection
  readonly startedMs: number
  requestId = ''
  /** Request target: as received, and in origin form once it was checked. */
  url: string
  /** `Host` or `:authority`. */
  authority: string | undefined
  connectionHeader: string | undefined
  isTrustedPeer = false
  activeRoute: ActiveRoute | undefined
  caller: Caller | undefined
  outcome: HttpOutcome | undefined
  /** Of the answer; 0 without one. */
  status = 0
  /** Of bodies. */
  bytesIn = 0
  bytesOut = 0
  /** Attempts that were made. */
  attempts = 0
  /** Instance of the last attempt. */
  instance: string | undefined
  /** Whether no upstream could take the request. */
  isUnsent = false
  watchedAt = -1
  #isOver = false

  constructor(parts: ExchangeParts, active: ActiveConfig, source: ExchangeSource) {
    this.parts = parts
    this.active = active
    this.method = source.method
    this.url = source.url
    this.rawHeaders = source.rawHeaders
    this.connection = source.connection
    this.startedMs = parts.monotonicMs()
  }

  /** Pattern of the resource for limits that count by route. */
  get route(): string | undefined {
    return this.activeRoute?.route.name
  }

  get peerAddress(): string | undefined {
    return this.connection.peerAddress
  }

  get priority(): number {
    return this.activeRoute!.route.priority
  }

  get hashKey(): string | undefined {
    const { hashBy } = this.activeRoute!.upstream
    return hashBy === undefined ? undefined : hashValue(hashBy, this)
  }

  /** Such as `1.1`. */
  abstract get httpVersion(): string

  /** Whether the client cannot be answered any more. */
  abstract get isGone(): boolean

  /** Whether an answer was begun. */
  protected abstract get hasAnswered(): boolean

  /** Sends an answer of the gateway, unless one was begun. */
  abstract answer(answer: GatewayAnswer): void

  /** Sends the admitted request on. */
  protected abstract forward(): void

  header(name: string): string | readonly string[] | undefined {
    const { rawHeaders } = this
    let found: string | string[] | undefined
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const candidate = rawHeaders[index]!
      if (candidate.length !== name.length || (candidate !== name && candidate.toLowerCase() !== name)) continue
      const value = rawHeaders[index + 1]!
      if (found === undefined) found = value
      else if (typeof found === 'string') found = [found, value]
      else found.push(value)
    }
    return found
  }

  /** Takes the request through routing, identity and limits. Never throws. */
  begin(): void {
    this.active.hold()
    this.parts.metrics.begun()
    this.parts.watch.add(this)
    try {
      this.#begin()
    } catch (error) {
      this.fail('a request could not be routed', error)
    }
  }

  #begin(): void {
    const { parts, active } = this
    const isUsable = this.#readTarget()
    this.isTrustedPeer = this.connection.isTrustedBy(active.trust)
    this.requestId = (this.isTrustedPeer && knownRequestId(this.header('x-request-id'))) || parts.newRequestId()
    if (!isUsable) this.answer(INVALID_TARGET)
    else if (active.config.healthPaths.has(this.url)) this.answer(isHealthy(this.url, parts) ? READY : NOT_READY)
    else this.#routed()
  }

  /** Frees what the request holds. Called once when the answer was sent or the connection closed. */
  protected over(): void {
    if (this.#isOver) return
    this.#isOver = true
    const { parts, active, outcome } = this
    parts.watch.remove(this)
    if (outcome?.allowed === true) outcome.finish?.(this.isUnsent ? NOT_SENT : this.status)
    const durationMs = parts.monotonicMs() - this.startedMs
    parts.metrics.ended(this, durationMs)
    if (active.config.accessLog !== 'off') parts.accessLog.write(this, durationMs, active.config.accessLog)
    active.release()
  }

  /** Ends a request whose time is up. Called by {@link ExchangeWatch}. */
  abstract check(nowMs: number): void

  /** Told that the gateway stops: ends what would not end by itself. */
  abstract leave(): void

  #routed(): void {
    const { active } = this
    const route = active.config.router.find(routed.of(this))
    if (route === undefined) {
      this.answer(active.config.router.isAmbiguous(routed.of(this)) ? AMBIGUOUS : NO_ROUTE)
      return
    }
    this.activeRoute = active.active(route)
    const answer = active.identifier.identify(this, route.auth)
    if (answer instanceof Promise) {
      answer.then(
        (later) => this.#identified(later),
        (error: unknown) => this.fail('the caller could not be identified', error),
      )
    } else this.#identified(answer)
  }

  #identified(answer: CallerAnswer): void {
    if (this.isGone) return
    if (isUnauthenticated(answer)) {
      this.answer(unauthenticatedAnswer(answer))
      return
    }
    this.caller = answer
    if (!this.activeRoute!.route.isLimited) {
      this.#admitted()
      return
    }
    try {
      const settled = this.parts.limits.begin(this, (outcome) => this.#settled(outcome))
      if (settled instanceof Promise) settled.catch((error: unknown) => this.#limitsFailed(error))
    } catch (error) {
      this.#limitsFailed(error)
    }
  }

  #settled(outcome: HttpOutcome): void {
    this.outcome = outcome
    if (this.isGone) {
      // The end of the connection came before there was anything to finish.
      if (outcome.allowed) outcome.finish?.(0)
      return
    }
    if (!outcome.allowed) {
      const headers = Object.entries(outcome.headers).flat()
      this.answer({ status: outcome.status, headers, body: outcome.body })
    } else if (outcome.delayMs > 0) {
      this.parts.timers.schedule(outcome.delayMs, () => this.#admitted())
    } else this.#admitted()
  }

  #admitted(): void {
    if (this.isGone) return
    try {
      this.forward()
    } catch (error) {
      this.fail('a request could not be sent on', error)
    }
  }

  #limitsFailed(error: unknown): void {
    this.parts.logger.error('limits could not be checked', { error: String(error), route: this.route })
    if (!this.isGone) this.answer(LIMITS_UNAVAILABLE)
  }

  /** Answers with 500 for what must not happen. */
  protected fail(message: string, error: unknown): void {
    this.parts.logger.error(message, { error: String(error), requestId: this.requestId })
    if (!(this.isGone || this.hasAnswered))
      this.answer(problemAnswer('internal', 'See the log of the gateway for the request id.'))
  }

  /** Reads `Host`, `Connection` and the target. False if the request cannot be used. */
  #readTarget(): boolean {
    const { rawHeaders } = this
    let host: string | undefined
    let authority: string | undefined
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index]!
      const { length } = name
      if (length !== 4 && length !== 10) continue
      const lower = name.toLowerCase()
      const value = rawHeaders[index + 1]!
      if (lower === 'host') {
        if (host !== undefined) return false
        host = value
      } else if (lower === ':authority') authority = value
      else if (lower === 'connection') {
        this.connectionHeader = this.connectionHeader === undefined ? value : `${this.connectionHeader},${value}`
      }
    }
    return (host === undefined || authority === undefined || host === authority) && this.#useTarget(host ?? authority)
  }

  #useTarget(authority: string | undefined): boolean {
    // HTTP/1.0 has no `Host`.
    if (authority === undefined ? this.httpVersion !== '1.0' : !isAuthority(authority)) return false
    this.authority = authority
    const path = originForm(this.url, authority)
    if (path === undefined) return false
    this.url = path
    return true
  }
}

/** A gateway that waits for its upstreams is alive: a restart would not help. */
function isHealthy(path: string, { isReady }: ExchangeParts): boolean {
  return path.endsWith('/livez') || isReady()
}

/** What an exchange is made from. */
export interface ExchangeSource {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
  readonly connection: ClientConnection
}

function unauthenticatedAnswer({ status, challenge, detail, retryAfterSeconds }: Unauthenticated): GatewayAnswer {
  const headers = challenge === '' ? [] : ['WWW-Authenticate', challenge]
  if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds))
  if (status === 401) return problemAnswer('unauthorized', detail, headers)
  return problemAnswer(status === 429 ? 'too-many-failures' : 'credentials-unavailable', detail, headers)
}

/** The view that routers have of an exchange. Routers are synchronous, so that all requests share one. */
class RoutedView implements RoutedRequest {
  #exchange!: Exchange

  of(exchange: Exchange): this {
    this.#exchange = exchange
    return this
  }

  get method(): string {
    return this.#exchange.method
  }

  get host(): string | undefined {
    const { authority } = this.#exchange
    return authority === undefined ? undefined : hostOf(authority)
  }

  get path(): string {
    return this.#exchange.url
  }

  header(name: string): string | undefined {
    const value = this.#exchange.header(name)
    return typeof value === 'object' ? value.join(', ') : value
  }
}

const routed = new RoutedView()

/** The value that an upstream hashes by. Undefined if the request has none: then the address decides. */
function hashValue(hashBy: string, exchange: Exchange): string | undefined {
  const { caller } = exchange
  if (hashBy === 'user') return caller?.user ?? caller?.apiKey ?? caller?.ip
  if (hashBy === 'ip') return caller?.ip
  const name = hashBy.slice(hashBy.indexOf(':') + 1)
  if (hashBy.startsWith('header:')) return textOf(exchange.header(name.toLowerCase())) ?? caller?.ip
  return cookieOf(textOf(exchange.header('cookie')), name) ?? caller?.ip
}

function textOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join('; ') : value
}

function cookieOf(cookies: string | undefined, name: string): string | undefined {
  if (cookies === undefined) return undefined
  for (const pair of cookies.split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return undefined
}
