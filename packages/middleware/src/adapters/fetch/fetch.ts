import type { DecisionLike } from '@sluice/contract'
import { SluiceError, systemTimers } from '@sluice/core'
import { can, checkForms } from '@sluice/core/options'
import type { Denial } from '../../http/denial-response.ts'
import type { HttpRequest } from '../../http/http-request.ts'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import { isPromise } from '../../http/maybe-promise.ts'
import type { HttpOutcome } from '../../http/request-outcome.ts'
import { narrowestDecision } from '../../http/request-outcome.ts'
import { createHttpLimiter } from '../../limiter/http-limiter.ts'
import { detectFramework, throwWrongFramework, wrongFrameworkError } from '../../options/framework-detection.ts'
import type { RateLimitOptions } from '../../options/rate-limit-options.ts'
import { rememberHeaders, withRememberedHeaders } from './fetch-headers.ts'
import { checkResponse, clientDisconnected, waitForDelay, watchResponse } from './fetch-response.ts'
import { ADDRESS_FORM, pathOf, peerAddressFrom } from './fetch-server.ts'

/** A call of a fetch handler: the request and the other arguments. */
export interface FetchCall<Args extends readonly unknown[] = readonly unknown[]> {
  readonly request: Request
  /** Arguments after the request: bindings of Workers, parameters of a Next.js route, the server of Bun, ... */
  readonly args: Args
}

/** Options of {@link rateLimit}. */
export interface FetchRateLimitOptions<Args extends readonly unknown[] = readonly unknown[]>
  extends RateLimitOptions<FetchCall<Args>> {
  /**
   * Remote address of the connection. Detected for @hono/node-server, Bun.serve and Deno.serve if the handler receives
   * their arguments. On other platforms, read what only the platform can set:
   *
   * ```ts
   * // Cloudflare Workers
   * rateLimit({ limit: 100, window: '1m', address: (request) => request.headers.get('cf-connecting-ip') ?? undefined })
   * // Bun
   * rateLimit({ limit: 100, window: '1m', address: (request, server: Server) => server.requestIP(request)?.address })
   * // Deno
   * rateLimit({ limit: 100, window: '1m', address: (_, info: Deno.ServeHandlerInfo<Deno.NetAddr>) =>
   * info.remoteAddr.hostname })
   * ```
   *
   * For a header of your own proxies, use `trustProxy`.
   */
  readonly address?: (request: Request, ...args: Args) => string | undefined
  /**
   * Answers in place of the default denial. Receives its status, headers and body. Rate limit headers are added to the
   * response unless it sets them.
   */
  readonly onLimited?: (call: FetchCall<Args>, denial: Denial) => MaybePromise<Response>
}

/** Wraps fetch handlers. All handlers wrapped by one limiter count together. */
export interface FetchRateLimit<Args extends readonly unknown[] = readonly unknown[]> {
  /** The limited handler. */
  <HandlerArgs extends Args>(
    handler: (request: Request, ...args: HandlerArgs) => MaybePromise<Response>,
  ): (request: Request, ...args: HandlerArgs) => Promise<Response>
  /**
   * Decides a request without a handler, such as in Next.js middleware. The caller sends headers or denial, waits
   * `delayMs` and calls `finish`.
   */
  begin(request: Request, ...args: Args): MaybePromise<HttpOutcome>
  /** Frees what the limiter created, which is the default store. */
  close(): Promise<void>
}

/**
 * Limits handlers that take a Request and return a Response: Next.js route handlers, Remix and React Router loaders,
 * Workers, Bun.serve, Deno.serve:
 *
 * ```ts
 * const limited = rateLimit({ limit: 100, window: '1m' })
 *
 * export const GET = limited(async (request) => Response.json(await orders(request)))
 * ```
 *
 * Read the decision with {@link rateLimitOf}. A call is complete when its response body was read or the client
 * disconnected. Until then it holds its `concurrency` slot; then its charge is settled. Except on Node, a response that
 * is discarded unread never completes.
 */
export function rateLimit<Args extends readonly unknown[] = readonly unknown[]>(
  options: FetchRateLimitOptions<Args>,
): FetchRateLimit<Args>
export function rateLimit<Args extends readonly unknown[]>(
  options: FetchRateLimitOptions<Args>,
  ...others: readonly unknown[]
): FetchRateLimit<Args> {
  if (typeof options === 'function' || others.length > 0) throw misplacedHandler(options)
  const limiter = createHttpLimiter<FetchCall<Args>>(options, {
    name: 'fetch',
    ownOptions: ['address'],
    request: (call) => new FetchHttpRequest(call, addressOf),
  })
  checkForms(options, ADDRESS_FORM)
  const { address, onLimited = deny, timers = systemTimers } = options
  const addressOf = (call: FetchCall<Args>): string | undefined =>
    address === undefined ? peerAddressFrom(call.args[0], call.request) : address(call.request, ...call.args)
  type Call = DecidedCall & FetchCall<Args>
  const begin = (call: Call): MaybePromise<HttpOutcome> => limiter.begin(call, (outcome) => remember(call, outcome))
  const answer = async (call: Call, handle: () => MaybePromise<Response>): Promise<Response> => {
    const begun = begin(call)
    const outcome = isPromise(begun) ? await begun : begun
    if (!outcome.allowed)
      return withRememberedHeaders(call, checkResponse(await onLimited(call, outcome), '"onLimited"'))
    const { delayMs, finish } = outcome
    const watch = finish && watchResponse(call.request, call.args[0], finish)
    if (delayMs > 0 && !(await waitForDelay(call.request, delayMs, timers))) return clientDisconnected()
    try {
      const response = withRememberedHeaders(call, checkResponse(await handle(), 'the handler'))
      return watch === undefined ? response : watch.answered(response)
    } catch (error) {
      watch?.failed()
      throw error
    }
  }
  const limited: FetchRateLimit<Args> = Object.assign(
    <HandlerArgs extends Args>(handler: (of: Request, ...args: HandlerArgs) => MaybePromise<Response>) => {
      if (typeof handler !== 'function') return rejectHandler(handler)
      return (of: Request, ...args: HandlerArgs): Promise<Response> =>
        answer(callOf(of, args), () => handler(of, ...args))
    },
    {
      begin: (of: Request, ...args: Args) => begin(callOf(of, args)),
      close: () => limiter.close(),
    },
  )
  return limited
}

/**
 * The decision on a request. With several limiters: the one with the fewest remaining units. Undefined if no limiter
 * decided.
 */
export function rateLimitOf(request: Request): DecisionLike | undefined {
  return (request as MarkedRequest)[CALL]?.decision
}

/** Links a request to its call. A WeakMap is measurably slower. */
const CALL: unique symbol = Symbol('sluice.call')

interface MarkedRequest extends Request {
  [CALL]?: DecidedCall
}

interface DecidedCall extends FetchCall {
  decision: DecisionLike | undefined
}

/** One object per request for all limiters, so that each knows what the previous one announced. */
function callOf<Args extends readonly unknown[]>(request: MarkedRequest, args: Args): DecidedCall & FetchCall<Args> {
  // The headers are not read: some runtimes create them on first access.
  if (!can(request, 'clone')) throw wrongFrameworkError('fetch', request)
  const known = request[CALL]
  const isSame = known?.args.length === args.length && known.args.every((value, index) => value === args[index])
  if (isSame) return known as DecidedCall & FetchCall<Args>
  const call = { request, args, decision: known?.decision }
  request[CALL] = call
  return call
}

function remember(call: DecidedCall, outcome: HttpOutcome): HttpOutcome {
  rememberHeaders(call, outcome)
  call.decision = narrowestDecision(call.decision, outcome.decision)
  return outcome
}

/** A class, because every object literal with a getter has its own hidden class, which is slow. */
class FetchHttpRequest<Call extends FetchCall> implements HttpRequest {
  readonly method: string
  /** Servers do not expose the matched pattern. */
  readonly route: undefined
  readonly #call: Call
  readonly #addressOf: (call: Call) => string | undefined

  constructor(call: Call, addressOf: (call: Call) => string | undefined) {
    this.method = call.request.method
    this.#call = call
    this.#addressOf = addressOf
  }

  get url(): string {
    return pathOf(this.#call.request.url)
  }

  get peerAddress(): string | undefined {
    return this.#addressOf(this.#call)
  }

  header(name: string): string | undefined {
    return this.#call.request.headers.get(name) ?? undefined
  }
}

function deny(_: FetchCall, { status, headers, body }: Denial): Response {
  return new Response(body, { status, headers })
}

/** Other frameworks call the result with a request instead of a handler. */
function rejectHandler(handler: unknown): never {
  const form = detectFramework(handler)
  if (form !== undefined && form.framework !== 'fetch') return throwWrongFramework('fetch', handler) as never
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the limiter for fetch was put around something that is no handler',
    received: handler,
    expected: 'a function from a Request to a Response',
    action:
      'Write: rateLimit({ limit: 100, window: "1m" })(handler). To decide a request without a handler, use begin().',
  })
}

function misplacedHandler(options: unknown): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the limiter for fetch takes options and nothing else',
    ...(typeof options === 'function' ? { received: options } : {}),
    expected: 'the handler in a call of its own',
    action: 'Write: rateLimit({ limit: 100, window: "1m" })(handler).',
  })
}
