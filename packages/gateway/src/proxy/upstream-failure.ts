import type { Random } from '@sluice/core'
import { backoffDelayMs } from '@sluice/runtime'
import { type GatewayAnswer, problemAnswer } from '../http/problems.ts'
import type { NoInstance } from '../upstreams/upstream.ts'

/** Waits between attempts: short, because a client waits too. */
const RETRY_BACKOFF = { baseMs: 25, capMs: 1000 } as const

/** Milliseconds to wait after a number of attempts. */
export function retryDelayMs(attempts: number, random: Random): number {
  return backoffDelayMs(attempts - 1, () => random.nextUint32() / 2 ** 32, RETRY_BACKOFF)
}

/** Whether a request may be executed twice (RFC 9110, 9.2.2). */
export function isIdempotent(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'PUT' || method === 'DELETE'
}

/** A response was given up because its status is tried again. */
export class RetriedStatus extends Error {
  constructor(status: number) {
    super(`status ${status}`)
  }
}

/** A time limit is over. */
export class TimeUp extends Error {
  /** For the client, unless an answer has begun. */
  readonly answer: GatewayAnswer
  /** Whether the instance failed by it: it was its turn. */
  readonly isUpstreamLate: boolean

  constructor(message: string, answer: GatewayAnswer, isUpstreamLate: boolean) {
    super(message)
    this.answer = answer
    this.isUpstreamLate = isUpstreamLate
  }
}

const TIMEOUT = problemAnswer('gateway-timeout', 'The upstream did not answer in time.')
const FAILED = problemAnswer('bad-gateway', 'The connection to the upstream failed, or its response was not valid.')

const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
])

/** What the client gets when an upstream failed. */
export function failureAnswer(error: Error): GatewayAnswer {
  return TIMEOUT_CODES.has(codeOf(error)) ? TIMEOUT : FAILED
}

/** What the client gets when no instance can take its request. */
export function unavailableAnswer({ reason, retryAfterSeconds }: NoInstance): GatewayAnswer {
  const why = reason === 'no-capacity' ? 'All instances are busy.' : 'No instance is healthy.'
  const detail = `${why} Try again in ${retryAfterSeconds} ${retryAfterSeconds === 1 ? 'second' : 'seconds'}.`
  return problemAnswer('upstream-unavailable', detail, ['Retry-After', String(retryAfterSeconds)])
}

/**
 * Whether another attempt makes sense. An upstream that did not answer in time has had the whole time of the route; a
 * request that cannot be sent is the same at the next instance.
 */
export function canRetry(error: Error): boolean {
  const code = codeOf(error)
  return code !== 'UND_ERR_HEADERS_TIMEOUT' && code !== 'UND_ERR_INVALID_ARG' && code !== 'UND_ERR_NOT_SUPPORTED'
}

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}
